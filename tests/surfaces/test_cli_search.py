"""`affidavit search` on the command line."""


def test_words_are_found_with_their_place(cli):
    cli.record("We use getUserName here.")
    cli.record("Nothing of interest.")
    found = cli("search", "user", "name")
    assert found.code == 0
    assert "content of thought.recorded" in found.out
    assert "We use getUserName here." in found.out
    assert "interest" not in found.out
    assert [hit["task_id"] for hit in cli("search", "user", "--json").data["hits"]] == ["t1"]


def test_filters_and_an_empty_answer(cli):
    cli.record("We use an index.")
    assert "index" in cli("search", "index", "--kind", "thought", "--since", "1h").out
    assert cli("search", "index", "--task", "t2").out == "Nothing was found.\n"
    assert cli("search", "!").code == 2
