"""The pages for people: templates, what they show, and the button that verifies."""
