"""The auditor's part: judges what somebody recorded. Needs the core only, and trusts no view."""
