"""Files in other encodings than UTF-8 in a step: the prompt shows their text and names
the encoding.
"""

from pathlib import Path

from cdd_agent.context.code_text import CodeReader
from tests.engine.test_undo import again, back
from tests.engine.test_undo import diff as shown_diff
from tests.support.encoded_files import ENCODED, Encoded
from tests.support.projects import Sandbox, Step, check, run_all
from tests.support.tables import each_row

REPLY = "other.py\n```python\nx = 1\n```\n"


def heading(encoded: Encoded) -> str:
    return f"{encoded.path} ({encoded.note})" if encoded.note else encoded.path


async def prompt_of(sandbox: Sandbox, encoded: Encoded) -> str:
    sandbox.write(Step(f"{encoded.path}, other.py", check("other.py", "x")))
    encoded.write(sandbox.root)
    sandbox.replies(REPLY)
    await run_all(sandbox)
    return sandbox.prompt()


@each_row("encoded", ENCODED)
async def test_the_prompt_shows_the_text_and_names_the_encoding(
    sandbox: Sandbox, encoded: Encoded
) -> None:
    prompt = await prompt_of(sandbox, encoded)
    text = encoded.text.replace("\r\n", "\n")
    assert f"{heading(encoded)}:\n```py\n{text}" in prompt.replace("\r\n", "\n")


async def test_bytes_that_are_no_text_are_shown_as_signs(sandbox: Sandbox) -> None:
    (sandbox.root / "notes.txt").write_bytes("Grüße, schön\n".encode() + b"\xff\n")
    sandbox.write(Step("notes.txt, other.py", check("other.py", "x")))
    sandbox.replies(REPLY)
    await run_all(sandbox)
    prompt = sandbox.prompt()
    assert "notes.txt (in unknown encoding; \ufffd stands for each byte" in prompt
    assert "Grüße, schön\n\ufffd\n" in prompt


@each_row("data", [b"GIF\0", b"\xff\xfe\0\0\0", b"a" * 7_000 + b"\0"])
async def test_a_binary_file_is_named_and_not_shown(
    sandbox: Sandbox, data: bytes
) -> None:
    (sandbox.root / "a.bin").write_bytes(data)
    sandbox.write(Step("a.bin, other.py", check("other.py", "x")))
    sandbox.replies(REPLY)
    await run_all(sandbox)
    size = f"{len(data):,} bytes"
    assert f"a.bin exists and cannot be shown: it is a binary file of {size}" in (
        sandbox.prompt()
    )


@each_row("encoded", ENCODED)
def test_lines_of_a_file_are_those_of_its_text(
    tmp_path: Path, encoded: Encoded
) -> None:
    encoded.write(tmp_path)
    source = CodeReader(tmp_path).read(encoded.path)
    assert source is not None
    lines = encoded.text.splitlines()
    assert source.count == len(lines)
    part = source.parts(((len(lines), len(lines)),)).text
    assert part.startswith(f"{heading(encoded)}, in part")
    assert lines[-1] in part


@each_row("encoded", ENCODED)
async def test_an_edit_keeps_the_encoding_and_its_diff_is_decoded(
    sandbox: Sandbox, encoded: Encoded
) -> None:
    place = encoded.write(sandbox.root)
    line = next(line for line in encoded.text.splitlines() if encoded.word in line)
    (sandbox.root / "ok.txt").write_text("good\n")
    sandbox.write(Step(encoded.path, check("ok.txt")))
    sandbox.replies(
        f"{encoded.path}\n<<<<<<< SEARCH\n{line}\n=======\n{line} # {encoded.word}\n"
        ">>>>>>> REPLACE\n"
    )
    await run_all(sandbox)
    after = place.read_bytes()
    expected = encoded.text.replace(line, f"{line} # {encoded.word}")
    assert after == encoded.mark + expected.encode(encoded.codec)

    diff = await shown_diff(sandbox)
    assert f"\n-{line}" in diff
    assert f"\n+{line} # {encoded.word}" in diff
    await back(sandbox)
    assert place.read_bytes() == encoded.data
    await again(sandbox)
    assert place.read_bytes() == after
