"""How facts get in without asking the agent: what its client wrote down, or says as it works."""
