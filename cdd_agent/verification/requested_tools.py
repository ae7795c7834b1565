"""Tools that run tests only if `test_command` or a step's `**Verify:**` names them.

Maven, Gradle, CTest and dotnet build and fetch packages. Tox and nox create
environments. RSpec, PHPUnit and others need packages that may be missing; just, Task
and others run anything. Only the user knows when to run them, so cdd names their
commands.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from cdd_agent.files.manifests import Manifests, ManifestUnreadable
from cdd_agent.process.command_folder import in_folder
from cdd_agent.project.source_folders import SourceFolder


class RequestedTool(Struct, frozen=True):
    """A tool, and its command to run the tests."""

    name: str
    file: str
    """The file that reveals the tool, relative to the root."""
    command: str
    is_wrapper: bool = False
    """True if the tool usually starts a runner that is found anyway."""


class _Sign(Struct, frozen=True):
    """Signs of a tool."""

    name: str
    files: tuple[str, ...]
    """File name patterns. One match is enough."""
    command: str
    text: str = ""
    """A pattern that a matching file must contain."""
    variants: tuple[tuple[str, str], ...] = ()
    """File → command that replaces the usual one if the file exists."""
    is_wrapper: bool = False

    def find(self, root: Path, folder: SourceFolder) -> RequestedTool | None:
        for pattern in self.files:
            for name in sorted(folder.files):
                path = f"{folder.path}/{name}" if folder.path else name
                if fnmatchcase(name, pattern) and self._fits(root / path):
                    command = in_folder(folder.path, self._choose(root / folder.path))
                    return RequestedTool(self.name, path, command, self.is_wrapper)
        return None

    def _fits(self, file: Path) -> bool:
        if not self.text:
            return True
        try:
            data = Manifests(file.parent).data(file.name)
        except ManifestUnreadable:
            return False
        text = data.decode("utf-8", errors="replace")
        return re.search(self.text, text, re.MULTILINE) is not None

    def _choose(self, place: Path) -> str:
        for pattern, command in self.variants:
            for file in sorted(place.glob(pattern)):
                folder = file.parent.relative_to(place).as_posix()
                return command.format(folder=folder)
        return self.command


_SIGNS = (
    _Sign("Maven", ("pom.xml",), "mvn -q test", variants=(("mvnw", "./mvnw -q test"),)),
    _Sign(
        "Gradle",
        ("build.gradle*", "settings.gradle*"),
        "gradle test",
        variants=(("gradlew", "./gradlew test"),),
    ),
    _Sign(
        "CTest",
        ("CMakeLists.txt",),
        "ctest --test-dir build --output-on-failure",
        text=r"(?i)enable_testing|include\s*\(\s*CTest\s*\)|add_test\s*\(",
        variants=(
            (
                "*/CTestTestfile.cmake",
                "ctest --test-dir {folder} --output-on-failure",
            ),
        ),
    ),
    _Sign("Meson", ("meson.build",), "meson test -C build", text=r"\btest\s*\("),
    _Sign("Bazel", ("MODULE.bazel", "WORKSPACE*"), "bazel test //..."),
    _Sign("dotnet", ("*.sln", "*.slnx", "*.csproj", "*.fsproj"), "dotnet test"),
    _Sign("Swift", ("Package.swift",), "swift test"),
    _Sign("Zig", ("build.zig",), "zig build test"),
    _Sign("sbt", ("build.sbt",), "sbt test"),
    _Sign("Mix", ("mix.exs",), "mix test"),
    _Sign("Flutter", ("pubspec.yaml",), "flutter test", text=r"^\s+sdk:\s*flutter\b"),
    _Sign(
        "Dart",
        ("pubspec.yaml",),
        "dart test",
        text=r"\A(?![\s\S]*^\s+sdk:\s*flutter\b)",
    ),
    _Sign("Dune", ("dune-project",), "dune test"),
    _Sign("Leiningen", ("project.clj",), "lein test"),
    _Sign("Rebar3", ("rebar.config",), "rebar3 eunit"),
    _Sign("Crystal", ("shard.yml",), "crystal spec"),
    _Sign("prove", ("Makefile.PL", "Build.PL", "cpanfile"), "prove -lr t"),
    _Sign("Bats", ("*.bats",), "bats -r ."),
    _Sign("Busted", (".busted", "*.rockspec"), "busted"),
    _Sign("Stack", ("stack.yaml",), "stack test"),
    _Sign("Cabal", ("*.cabal", "cabal.project"), "cabal test all"),
    _Sign(
        "RSpec",
        (".rspec",),
        "rspec",
        variants=(("Gemfile", "bundle exec rspec"),),
    ),
    _Sign(
        "Rake",
        ("Rakefile",),
        "rake test",
        text=r"TestTask|^\s*task\s+:?\"?test\b",
        variants=(("Gemfile", "bundle exec rake test"),),
    ),
    _Sign(
        "RSpec",
        ("Gemfile", "*.gemspec"),
        "bundle exec rspec",
        text=r"[\"']rspec[\"']",
    ),
    _Sign(
        "PHPUnit",
        ("composer.json",),
        "vendor/bin/simple-phpunit",
        text='"symfony/phpunit-bridge"',
    ),
    _Sign(
        "PHPUnit",
        ("phpunit*.xml", "phpunit*.xml.dist"),
        "vendor/bin/phpunit",
        variants=(("vendor/bin/pest", "vendor/bin/pest"),),
    ),
    _Sign(
        "PHPUnit", ("composer.json",), "vendor/bin/phpunit", text='"phpunit/phpunit"'
    ),
    _Sign(
        "Deno",
        ("deno.json", "deno.jsonc"),
        "deno task test",
        text=r'"test"\s*:\s*["{]',
    ),
    _Sign("Deno", ("deno.json", "deno.jsonc", "deno.lock"), "deno test"),
    _Sign(
        "just",
        ("justfile", "Justfile", ".justfile"),
        "just test",
        text=r"^@?test\b[^:=\n]*:(?!=)",
        is_wrapper=True,
    ),
    _Sign(
        "Task",
        ("Taskfile.y*ml", "taskfile.y*ml", "Taskfile.dist.y*ml"),
        "task test",
        text=r"^\s+test\s*:",
        is_wrapper=True,
    ),
    _Sign("tox", ("tox.ini",), "tox", text=r"^\[(tox|testenv)", is_wrapper=True),
    _Sign("tox", ("tox.toml",), "tox", is_wrapper=True),
    _Sign("tox", ("pyproject.toml",), "tox", text=r"^\[tool\.tox\b", is_wrapper=True),
    _Sign("nox", ("noxfile.py",), "nox", is_wrapper=True),
    _Sign(
        "make",
        ("GNUmakefile", "Makefile", "makefile"),
        "make test",
        text=r"^test[ \t]*:(?!=)",
        is_wrapper=True,
    ),
    _Sign(
        "make",
        ("GNUmakefile", "Makefile", "makefile"),
        "make check",
        text=r"^check[ \t]*:(?!=)",
        is_wrapper=True,
    ),
)


def requested_tools(
    root: Path, folders: Iterable[SourceFolder]
) -> tuple[RequestedTool, ...]:
    """Return each tool once, in its outermost folder."""
    tools: dict[str, RequestedTool] = {}
    for folder in folders:
        for sign in _SIGNS:
            if sign.name in tools:
                continue
            tool = sign.find(root, folder)
            if tool is not None:
                tools[sign.name] = tool
    return tuple(tools.values())
