"""The auditor's shell: files, options and words around `affidavit.verify`. Needs no ledger.

It runs on the standard library and `cryptography` alone, also as `affidavit-verify.pyz`.
"""
