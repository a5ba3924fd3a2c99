"""`affidavit erase` on the command line: it shows, asks, and takes away."""

import affidavit


def record(cli, text="about Jane Doe"):
    return cli.record(text)["id"]


def test_without_a_yes_nothing_is_erased(cli):
    record(cli)
    asked = cli("erase", "--matching", "Jane Doe")
    assert asked.code == 2
    assert "nothing was erased: 1 text, 14 bytes" in asked.err
    assert "--yes" in asked.err
    assert "about Jane Doe" in cli("thoughts").out


def test_with_a_yes_it_is_gone(cli):
    one = record(cli)
    done = cli("erase", "--record", one, "--yes", "--by", "owner", "--reason", "asked")
    assert (done.code, done.out.splitlines()[0]) == (0, "Erased 1 text")
    assert "(erased)" in cli("thoughts").out
    assert cli("verify").code == 0
    assert cli("erase", "--record", one, "--yes").out == "There is nothing to erase.\n"


def test_names_stay_and_that_is_said(cli):
    cli("record", "--type", "plan", "--task", "jane", "--agent", "a", "jane did it")
    said = cli("erase", "--matching", "jane", "--yes").out
    assert "1 entry of the log itself say it in a name; names cannot be erased." in said


def test_who_erases_is_this_user_where_nobody_is_named(cli, path):
    record(cli)
    cli("erase", "--matching", "Jane", "--yes")
    with affidavit.open(path, readonly=True) as ledger:
        assert ledger.list_entries()[-1].body["by"]
