"""Decide which files are hidden from models. No other module does.

A file is hidden if its name or content suggests secrets, or if an ignore file lists it.
Its name may be shown.
"""

import re
import unicodedata
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cdd_agent.files.ignore_lists import READ_NAMES, FolderLists, read_lists_above
from cdd_agent.files.regular_files import read_beginning
from cdd_agent.pattern import Pattern

INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "CDD.md")
"""Files for models. The user's private git excludes do not hide them."""
BY_NAME = "its name suggests secrets"
_PRIVATE_KEY = "it holds a private key"
_SERVICE_ACCOUNT = "it holds the key of a service account"
_ACCESS = "it holds a password or a token"
_STEP_RECORD = "it holds former contents of files"
_STEP_RECORDS = Pattern(
    r"\.cdd/runs/(?:\.changes/)?[^/]+/(?:earlier-[^/]+/)?"
    r"(?:step-.*|(?:versions|contents|kept)/.*)"
)
"""Files of runs that may contain a hidden file."""
LARGEST_SEARCHED = 1_000_000
"""Bytes of a file."""

_ENDINGS = "json|ya?ml|toml|ini|cfg|conf|properties|xml|txt|csv"
_WORDS = r"(?:[._-][\w.-]*)?"
"""Text before an ending, such as `.production`."""
_STORES = Pattern(
    # environment files
    r"[.#]?\.env(?:rc)?(?:[._~#-].*|\d*)|.*\.env"
    r"|\.dev\.vars(?:\..*)?|\.secrets?(?!\.baseline$)(?:\..*)?"
    r"|local\.settings\.json"
    # passwords and tokens of programs
    r"|[._]netrc|\.npmrc|\.pypirc|\.pgpass|pgpass\.conf|\.my\.cnf|\.mylogin\.cnf"
    r"|\.?htpasswd|\.git-credentials|\.credentials(?:\.json)?|\.dockercfg|\.dockerconfigjson"
    r"|\.s3cfg|\.boto|\.databrickscfg|\.vault[_-](?:token|pass(?:word)?)(?:\.txt)?"
    r"|credentials\.tfrc\.json|\.terraformrc|\.sentryclirc|\.ftpconfig"
    r"|\.(?:msmtp|esmtp|fetchmail)rc|rclone\.conf|ngrok\.ya?ml|\.\w+_history"
    r"|application_default_credentials\.json|accesstokens\.json"
    # variables and state of Terraform
    r"|.*\.tfvars(?:\.json)?|.*\.tfstate(?:\..*)?"
)
_PROGRAMS = Pattern(
    r"(?:^|/)\.(?:aws/(?:credentials|config|(?:sso|cli)/cache/.*)|azure/[^/]+|config/gcloud/.*"
    r"|config/gh/hosts\.yml|docker/config\.json|kube/config|m2/settings\.xml"
    r"|gradle/gradle\.properties|(?:gem|cargo)/credentials(?:\.toml)?"
    r"|git/config|vscode/sftp\.json|kaggle/kaggle\.json|gnupg/.*"
    r"|ssh/(?!config$|known_hosts|authorized_keys)[^/]+(?<!\.pub))$"
)
_USUAL = Pattern(
    # keys
    r".*\.(?:pem|key|p8|p12|pkcs12|pfx|ppk|jks|bks|keystore|kdbx?|agekey|ovpn)"
    r"|(?:[\w-]*[_-])?id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:[_-][\w-]+)?"
    r"(?:\.(?:bak|old|orig|txt))?|[\w-]+_(?:rsa|dsa|ecdsa|ed25519)|secring\.gpg"
    # files of credentials
    rf"|(?:[\w-]+[._-])?credentials?{_WORDS}\.(?:{_ENDINGS})|(?:\w+_)?credentials"
    rf"|(?:[\w-]+\.)?secrets?{_WORDS}\.(?:{_ENDINGS})"
    rf"|[\w.-]*service[_-]?account{_WORDS}(?:[_-]?key)?{_WORDS}\.json"
    r"|(?:gcp|gcloud)[\w.-]*(?:key|sa)[\w.-]*\.json|[\w.-]*firebase-adminsdk.*\.json"
    r"|client_secrets?[\w.-]*\.json|auth\.json|sftp-config\.json"
    r"|kubeconfig(?:\.ya?ml)?|.+\.kubeconfig|(?:accesskeys|rootkey)\.csv"
    r"|passwords?\.(?:txt|csv)|vault[_-]pass(?:word)?(?:\.txt)?"
    r"|(?:key|keystore|signing|release-signing)\.properties"
    r"|.*\.publishsettings|settings-security\.xml"
    r"|(?:sitemanager|recentservers|filezilla)\.xml"
)
"""Names of secret files, except in tests."""
_CODE = frozenset(
    (
        *("py", "pyi", "js", "jsx", "ts", "tsx", "mjs", "cjs", "vue", "svelte"),
        *("go", "rs", "c", "h", "cc", "cpp", "hpp", "cs", "java", "kt", "scala"),
        *("rb", "php", "swift", "lua", "ex", "exs", "sh", "sql", "css", "scss"),
        *("html", "md", "rst", "svg", "png"),
    )
)
"""Endings of files whose name never makes them secret."""
_TEMPLATE = Pattern(
    r"(?:^|[._-])(?:examples?|samples?|templates?|tmpl|tpl|dist|dummy|fake|schema)"
    r"(?:[._-]|$)"
)
"""Parts of names of example files."""
_FIXTURES = Pattern(
    r"(?:^|/)(?:tests?|testing|test[_-]?data|testsuite|e2e|specs?|fixtures?|mocks?"
    r"|__(?:fixtures|tests|mocks)__)/"
)
"""Folders with invented keys."""
_TRANSLATIONS = Pattern(
    r"(?:^|/)(?:locales?|i18n|l10n|intl|lang|languages|translations|messages)/"
)
"""Folders of texts about passwords."""
_PUBLIC = Pattern(
    r"(?:.*[._-])?(?:public|pub|certs?|certificates?|ca|cacerts?|(?:full)?chain)"
    r"(?:[._-].*)?\.pem"
)
_COPY = Pattern(
    r"#(?P<locked>.+)#|(?P<copied>.+?)(?:~|\.(?:bak|backup|old|orig|save|rej))"
    r"|\.(?P<edited>.+)\.sw[opx]"
)
"""Copies by editors and users."""
_COPY_ENDINGS = (
    *("#", "~", ".bak", ".backup", ".old", ".orig", ".save", ".rej"),
    *(".swo", ".swp", ".swx"),
)
"""Testing these first is faster."""
_PROCESS_VARIABLES = Pattern(r"/proc/[^/]+/(?:task/[^/]+/)?environ")
_ENCRYPTED = Pattern(r"(?:^|/)(?:sealed|encrypted)[_-]?secrets?\b|\.enc(?:\.\w+)?$")

_KEY_TEXT = Pattern(
    rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    # the end of the line in texts, JSON, YAML and code
    rb"(?:\\[nr]|[\s\"'+,>|#*-])*"
    rb"(?:[A-Za-z-]+: ?[^\r\n]*[\r\n]+\s*)*"
    rb"[A-Za-z0-9+/=]{40}"
    rb"|^PuTTY-User-Key-File-\d|\bAGE-SECRET-KEY-1[A-Z0-9]{50}"
    rb"|^PrivateKey[ \t]*=[ \t]*[A-Za-z0-9+/]{43}=",
    re.MULTILINE,
)
_SERVICE_TEXT = Pattern(rb'"type"\s*:\s*"service_account"')
_KEY_WORDS = (b"PRIVATE KEY", b"private_key", b"Private", b"SECRET-KEY")
"""Searching for these first is faster."""
_ACCESS_TEXTS = {
    ".yarnrc.yml": Pattern(rb"npmAuth(?:Token|Ident):[ \t]*[\"']?[^\s\"'$]"),
    "nuget.config": Pattern(rb"cleartextpassword", re.IGNORECASE),
    ".cdd/config.yaml": Pattern(rb"\bheaders[\"']?[ \t]*:"),
}
"""By the end of a file's path."""


class HiddenFile(Struct, frozen=True):
    path: str
    why: str
    """A clause, such as `it is listed in .cddignore`."""


class HiddenFiles:
    """Decides for one project. Each ignore file is read once."""

    def __init__(self, root: Path, *, allowed: Collection[str] = ()) -> None:
        """`allowed` are the paths of files that models may see."""
        self._root = root.resolve()
        self._allowed = allowed
        self._lists: dict[PurePosixPath, FolderLists] = {}

    def why(self, path: str, data: bytes | None = None) -> str:
        """Return why a file is hidden, or an empty text. The path is relative to the
        root and need not exist. `data` is its content, if the caller has it.
        """
        if path in self._allowed:
            return ""
        why = self.why_by_name(path)
        if why:
            return why
        if data is None:
            with suppress(OSError, RuntimeError, ValueError):
                place = str((self._root / path).resolve())
                data = read_beginning(place, LARGEST_SEARCHED)
        return secret_in(path, data or b"")

    def why_by_name(self, path: str) -> str:
        """Like `why`, without reading the file. Links are followed."""
        if path in self._allowed:
            return ""
        for place in dict.fromkeys((path, self._without_links(path))):
            if is_secret_path(place):
                return BY_NAME
            if _STEP_RECORDS.fullmatch(place):
                return _STEP_RECORD
            list_name = self._find_list(PurePosixPath(place))
            if list_name:
                return explain_list(list_name)
        return ""

    def _without_links(self, path: str) -> str:
        """Return a path relative to the root, or absolute if it is outside."""
        try:
            place = (self._root / path).resolve()
        except (OSError, RuntimeError, ValueError):
            return path
        if place.is_relative_to(self._root):
            return place.relative_to(self._root).as_posix()
        return place.as_posix()

    def _find_list(self, path: PurePosixPath) -> str:
        """Return the name of the list that hides a path or a parent folder."""
        if path.is_absolute() or ".." in path.parts or not path.parts:
            return ""
        if path.parts[:2] == (".cdd", "prompts"):
            return ""
        is_for_models = path.parts[0] == ".cdd" or path.name in INSTRUCTIONS
        for place in (*reversed(path.parents[:-1]), path):
            lists = self._lists_in(place.parent)
            is_folder = place != path or (self._root / path).is_dir()
            rules = lists.find_model_list(place.name, is_folder=is_folder)
            if not rules and not is_for_models:
                rules = lists.find_user_list(place.name, is_folder=is_folder)
            if rules:
                return rules.name
        return ""

    def _lists_in(self, folder: PurePosixPath) -> FolderLists:
        if folder not in self._lists:
            if folder.parts:
                above = self._lists_in(folder.parent)
                lists = above.enter(folder.name)
            else:
                lists = read_lists_above(self._root)
            self._lists[folder] = lists.read_folder(READ_NAMES)
        return self._lists[folder]


def explain_list(name: str) -> str:
    return f"it is listed in {name}"


def is_secret_path(path: str) -> bool:
    """True if a path, with its folders, suggests keys or passwords."""
    if _is_secret_name(path):
        return True
    if not path.endswith(_COPY_ENDINGS):
        return False
    folder, slash, name = path.replace("\\", "/").rpartition("/")
    copy = _COPY.fullmatch(name)
    if copy is None:
        return False
    original = copy[copy.lastgroup or 0]
    return _is_secret_name(f"{folder}{slash}{original}")


def _is_secret_name(path: str) -> bool:
    suffix = path.rpartition(".")[2]
    if suffix in _CODE and not path.rpartition("/")[2].startswith("."):
        return False
    name = path.casefold().replace("\\", "/")
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name).casefold()
    last = name.rpartition("/")[2]
    if not _suggests_secret(name, last):
        return False
    return not _TEMPLATE.search(last) and not _ENCRYPTED.search(name)


def _suggests_secret(path: str, name: str) -> bool:
    if _STORES.fullmatch(name) or _PROCESS_VARIABLES.fullmatch(path):
        return True
    if (path.startswith(".") or "/." in path) and _PROGRAMS.search(path):
        return True
    if not _USUAL.fullmatch(name) or _PUBLIC.fullmatch(name):
        return False
    return not _FIXTURES.search(path) and not _TRANSLATIONS.search(path)


def secret_in(path: str, data: bytes) -> str:
    """Return why a content is secret, or an empty text."""
    if b"\0" in data:
        # turns UTF-16 and UTF-32 into plain text
        data = data.replace(b"\0", b"")
    folded = path.casefold()
    last = folded.split("/")[-2:]
    access_text = _ACCESS_TEXTS.get(last[-1]) or _ACCESS_TEXTS.get("/".join(last))
    if access_text and access_text.search(data):
        return _ACCESS
    if not any(word in data for word in _KEY_WORDS) or _FIXTURES.search(folded):
        return ""
    searched = data[:LARGEST_SEARCHED]
    if b'"private_key"' in searched and _SERVICE_TEXT.search(searched):
        return _SERVICE_ACCOUNT
    return _PRIVATE_KEY if _KEY_TEXT.search(searched) else ""
