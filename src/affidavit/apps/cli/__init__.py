"""The command line: words in, one answer out, as plain text for people or JSON for programs.

`main` runs a command, `arguments` holds what each one takes, `render` how an answer looks; every
other module here carries out the commands of one noun and is loaded only when it is called for.
"""
