"""`affidavit serve` as a process: where it listens, whom it refuses, how it ends."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mcp import Client

import affidavit
from affidavit.apps.http.guard import CALL_BYTES_MAX
from affidavit.apps.http.serving import open_socket, url_of
from affidavit.core.names import PAYLOAD_BYTES_MAX
from surfaces.mcp_clients import ERAS, data, run
from surfaces.serving import Server, serving


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One server for all tests that only ask."""
    folder = tmp_path_factory.mktemp("serve")
    with serving(str(folder / "trail.db"), log=folder / "log") as server:
        yield server
    with affidavit.open(server.ledger, readonly=True) as ledger:
        assert ledger.verify().valid


@pytest.mark.parametrize(("by", "words"), [(signal.SIGTERM, ()), (signal.SIGINT, ("--json",))])
def test_it_prints_one_url_and_ends_cleanly(path, tmp_path, by, words):
    server = Server(path, *words, log=tmp_path / "log")
    assert server.get("/").status == 200
    lingering = server.connect()
    lingering.request("GET", "/healthz", headers={"Host": server.host})
    lingering.getresponse().read()
    began = time.monotonic()
    assert server.stop(by) == (0, "")
    assert time.monotonic() - began < 15
    lingering.close()
    assert server.url.startswith("http://127.0.0.1:")
    if words:
        told = {"url": server.url, "ledger": path}
        assert json.loads(server.first_line) == {"ok": True, "data": told}
    else:
        assert server.first_line == server.url
    assert not Path(f"{path}-wal").exists(), "the ledger was not closed"
    assert "Traceback" not in server.log


def test_a_port_that_is_taken_is_a_clear_error(shared, run_cli, path):
    port = shared.host.rpartition(":")[2]
    ran = run_cli("serve", "--port", port, "--json", "--ledger", path)
    assert ran.code == 4
    assert ran.error["code"] == "ERR_ADDRESS_IN_USE"
    assert port in ran.error["message"]
    assert "port" in ran.error["hint"]
    assert not Path(path).exists(), "a server that could not start made a ledger"


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "", "127.0.0.2", "127.0.0.1.example.org"]
)
def test_an_address_beyond_this_machine_is_refused(cli, path, host):
    ran = cli("serve", "--host", host, "--port", "0", "--json")
    assert ran.code == 2
    assert (ran.error["code"], ran.error["details"]["field"]) == ("INVALID_PARAMS", "host")
    assert "loopback" in ran.error["message"]
    assert not Path(path).exists()


@pytest.mark.parametrize("port", ["-1", "65536", "http", "8470x", "\u0661"])
def test_a_port_that_is_none_is_refused(cli, port):
    assert cli("serve", "--port", port, "--json").code == 2


def test_the_other_loopback_is_served_too():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:  # a machine without IPv6 says so
        with pytest.raises(affidavit.StoreError, match="::1 port 0 cannot be used"):
            open_socket("::1", 0)
    else:
        with open_socket("::1", 0) as listening:
            assert url_of(listening) == f"http://[::1]:{listening.getsockname()[1]}/"
    with open_socket("localhost", 0) as listening:
        assert url_of(listening) == f"http://127.0.0.1:{listening.getsockname()[1]}/"


def test_a_ledger_that_is_not_there_is_not_made_when_that_is_said(cli, path):
    ran = cli("serve", "--port", "0", "--no-create", "--json")
    assert (ran.code, ran.error["code"]) == (4, "ERR_STORE_UNAVAILABLE")
    assert not Path(path).exists()


def test_a_file_that_is_no_ledger_ends_it(run_cli, tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("something else " * 100, encoding="utf-8")
    ran = run_cli("serve", "--port", "0", "--ledger", str(other))
    assert (ran.code, ran.out) == (4, "")
    assert "affidavit: " in ran.err


@pytest.mark.parametrize("name", ["jinja2", "starlette", "uvicorn", "mcp_types"])
def test_without_the_extra_it_says_what_to_install(name, path):
    script = (
        f"import sys; sys.modules[{name!r}] = None; "
        "from affidavit.apps.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "serve", "--json", "--port", "0", "--ledger", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"]) == (4, "ERR_EXTRA_MISSING")
    assert name in error["message"]
    assert "affidavit[server]" in error["hint"]


def test_nothing_of_the_server_is_loaded_for_the_help():
    script = (
        "import sys; from affidavit.apps.cli.main import main; main(['serve', '--help']); "
        "print(sorted({'starlette', 'uvicorn', 'jinja2', 'mcp', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("[]\n")


FOREIGN_HOSTS = [
    "example.org", "127.0.0.1.example.org", "localhost.example.org:80", "192.0.2.1", "0.0.0.0",
    "", "localhost:80@example.org", "127.0.0.1:x", "127.0.0.2", "[::2]:80",
]  # fmt: skip


@pytest.mark.parametrize("path_asked", ["/", "/mcp", "/healthz", "/static/page.css"])
@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_name_that_is_not_this_machines_is_refused(shared, path_asked, host):
    reply = shared.ask("GET", path_asked, {"Host": host})
    assert reply.status == 403
    assert json.loads(reply.text)["code"] == "ERR_ORIGIN_REFUSED"


def test_two_names_at_once_are_refused(shared):
    with socket.create_connection(shared.host.rsplit(":", 1), timeout=5) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: example.org\r\n\r\n")
        assert b" 40" in raw.recv(100)[:16]


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("path_asked", ["/", "/mcp", "/sample", "/verify"])
@pytest.mark.parametrize(
    "origin", ["http://example.org", "null", "https://{host}", "http://localhost:1", ""]
)
def test_a_page_of_another_origin_is_refused(shared, method, path_asked, origin):
    reply = shared.ask(method, path_asked, {"Origin": origin.format(host=shared.host)})
    assert reply.status == 403
    assert json.loads(reply.text)["code"] == "ERR_ORIGIN_REFUSED"


@pytest.mark.parametrize("path_asked", ["/sample", "/verify"])
def test_a_form_that_does_not_say_where_it_comes_from_is_refused(shared, path_asked):
    reply = shared.ask("POST", path_asked)
    assert reply.status == 403
    assert json.loads(reply.text)["hint"] == f"Send the header Origin: http://{shared.host}"


def test_a_name_of_this_machine_is_answered(shared):
    port = shared.host.rpartition(":")[2]
    for host in (f"localhost:{port}", f"LOCALHOST:{port}", "localhost", "[::1]:9"):
        assert shared.ask("GET", "/healthz", {"Host": host}).status == 200


@pytest.mark.parametrize("path_asked", ["/verify", "/sample", "/nowhere"])
def test_a_body_over_the_limit_is_refused(shared, path_asked):
    origin = {"Origin": f"http://{shared.host}"}
    told = shared.ask("POST", path_asked, {**origin, "Content-Length": str(10**12)})
    chunked = {**origin, "Transfer-Encoding": "chunked"}
    body = b"10000\r\n" + b"x" * 65_536 + b"\r\n1\r\nx\r\n0\r\n\r\n"
    connection = shared.connect()
    with contextlib.closing(connection):
        connection.putrequest("POST", path_asked, skip_host=True)
        for name, value in {"Host": shared.host, **chunked}.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        streamed = connection.getresponse()
        problem = json.loads(streamed.read())
    assert (told.status, streamed.status) == (413, 413)
    assert json.loads(told.text) == problem
    assert problem["code"] == "ERR_TOO_LARGE"
    assert "65,536 bytes" in problem["detail"]
    assert told.headers["content-type"] == "application/problem+json"
    assert told.headers["connection"] == "close"


def test_a_call_may_be_larger_than_a_form(shared):
    reply = shared.ask("POST", "/mcp", body=b" " * 100_000)
    assert reply.status != 413
    told = shared.ask("POST", "/mcp", {"Content-Length": str(10**9)})
    assert told.status == 413


def read_answer(raw):
    answer = b""
    while not answer.endswith(b"}"):
        answer += raw.recv(1000)
    return answer


def test_who_is_too_slow_is_not_waited_for(path, tmp_path):
    first = (
        "import affidavit.apps.http.guard as g, affidavit.apps.http.serving as s; "
        "g.BODY_SECONDS_MAX = s.HEAD_SECONDS_MAX = 0.3"
    )
    with serving(path, first=first, log=tmp_path / "log") as server:
        address = server.host.rsplit(":", 1)
        origin = f"Origin: http://{server.host}\r\n".encode()
        head = b"POST /verify HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
        with socket.create_connection(address, timeout=5) as raw:
            raw.sendall(head + b"Content-Length: 5\r\n\r\nab")
            assert b" 408 " in raw.recv(1000)
        for sent in (b"", b"GET / HT", head, head + origin):
            with socket.create_connection(address, timeout=5) as raw:
                raw.sendall(sent)
                assert raw.recv(100) == b""
        with socket.create_connection(address, timeout=5) as raw:
            ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
            raw.sendall(ask + b"\r\n")
            assert b" 200 " in read_answer(raw)
            raw.sendall(ask)
            assert raw.recv(100) == b""


def test_it_tells_that_it_is_well(shared):
    assert json.loads(shared.get("/healthz").text) == {"status": "ok"}
    ready = shared.get("/readyz")
    assert (ready.status, json.loads(ready.text)["status"]) == (200, "ok")


def test_it_tells_when_a_record_would_not_be_kept(path, tmp_path):
    with serving(path, log=tmp_path / "log") as server:
        Path(path).rename(tmp_path / "away.db")
        ready = server.get("/readyz")
        assert (ready.status, json.loads(ready.text)["status"]) == (503, "failing")
        assert json.loads(ready.text)["reasons"]
        assert server.get("/healthz").status == 200
        (tmp_path / "away.db").rename(path)


def test_the_log_holds_no_payload_and_no_address(path, tmp_path):
    secret = "correct-horse"
    first = (
        "import affidavit.apps.web.pages as p, affidavit.apps.mcp.service as s; "
        f"fail = lambda *given, **named: [].index({secret!r}); "
        "p.Pages._tasks = fail; s.convert = fail"
    )
    with serving(path, first=first, log=tmp_path / "log") as server:
        assert secret not in server.get("/tasks").text

        async def call():
            async with Client(f"{server.url}mcp") as client:
                return await client.call_tool("task_list", {"status": secret})

        assert run(call).structured_content["error"]["code"] == "HANDLER_ERROR"
        server.ask("POST", "/mcp", body=f'{{"method": "{secret}"'.encode())
        server.get(f"/session?id={secret}")
        server.get(f"/{secret}")
        server.ask("GET", "/", {"User-Agent": secret, "Referer": f"http://localhost/{secret}"})
        server.ask("POST", f"/verify?back=/{secret}", body=secret.encode())
        with socket.create_connection(server.host.rsplit(":", 1), timeout=5) as raw:
            raw.sendall(f"{secret} / HTTP/1.1\r\n\r\n".encode())
            raw.recv(1000)
        log = server.log
    assert "GET /session 404" in log
    assert "(no such page) 404" in log
    assert "a bug: ValueError" in log
    assert "task_list failed\n  ValueError\n" in log
    assert "GET /tasks 500" in log
    assert secret not in log
    assert secret[:6] not in log


def test_two_servers_write_and_show_one_ledger(path, tmp_path):
    with (
        serving(path, log=tmp_path / "one") as one,
        serving(path, log=tmp_path / "two") as two,
    ):
        assert "Nothing is recorded yet" in two.get("/").text
        assert one.post("/sample").status == 303
        assert "Sample record." in two.get("/").text
        two.verify()
        assert "Everything checked holds" in two.get("/verify").text


@pytest.mark.parametrize("era", ERAS)
def test_an_mcp_client_records_and_the_page_shows_it(shared, era):
    async def work():
        async with Client(f"{shared.url}mcp", mode=era) as client:
            await client.list_tools()
            given = {"type": "decision", "task_id": "over http", "agent_id": "a", "content": era}
            return data(await client.call_tool("thought_record", given))

    record = run(work)
    page = shared.get("/task?id=over+http").text
    assert f'id="entry-{record["index"]}"' in page
    assert f">{era}<" in page
    assert "said \u00b7 mcp" in page


def test_a_call_that_is_all_escapes_gets_through(shared):
    assert len(json.dumps("\x01")[1:-1]) * PAYLOAD_BYTES_MAX < CALL_BYTES_MAX

    async def work():
        async with Client(f"{shared.url}mcp") as client:
            await client.list_tools()
            given = {"type": "plan", "task_id": "large", "agent_id": "a", "content": "\x01" * 2**20}
            return data(await client.call_tool("thought_record", given))

    record = run(work)
    text = shared.get(f"/text?index={record['index']}&name=content")
    assert (text.status, len(text.text)) == (200, 2**20)
    assert len(shared.get("/").text) < 50_000


def test_readonly_offers_nothing_that_writes(path, tmp_path):
    with affidavit.open(path) as ledger:
        ledger.create_task(title="x")
    before = Path(path).read_bytes()
    with serving(path, "--mode", "readonly", log=tmp_path / "log") as server:
        page = server.get("/").text
        assert "read-only" in page
        server.verify()
        assert "Everything checked holds" in server.get("/verify").text
        assert server.post("/sample").status in (403, 409)
    assert Path(path).read_bytes() == before


def test_make_run_is_the_server():
    root = Path(__file__).resolve().parents[2]
    command = ["make", "--no-print-directory", "-n", "run"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ".venv/bin/affidavit serve"
