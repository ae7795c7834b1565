"""Which files no model sees unless the user says so, and why. The only module that
answers this question.

A file is hidden if it holds secrets, by its name or by its content, or if an ignore
file keeps it from models. Its name may be shown where only names are listed.
"""

import re
import unicodedata
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cdd_agent.files.ignore_lists import READ_NAMES, FolderLists, lists_from_top
from cdd_agent.files.regular_files import read_beginning

INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "CDD.md")
"""Names of files that are written for models. The user's lists of git do not hide
them.
"""
BY_NAME = "its name suggests secrets"
_PRIVATE_KEY = "it holds a private key"
_SERVICE_ACCOUNT = "it holds the key of a service account"
_ACCESS = "it holds a password or a token"
_KEPT = "it keeps what files held before a step"
_RECORD_OF_STEP = re.compile(
    r"\.cdd/runs/(?:\.changes/)?[^/]+/(?:earlier-[^/]+/)?"
    r"(?:step-.*|(?:versions|contents|kept)/.*)"
)
"""Files of a run's record in which a hidden file may be, also of changes outside of
tickets.
"""
LARGEST_SEARCHED = 1_000_000
"""Bytes of a file in which secrets are looked for."""

_ENDINGS = "json|ya?ml|toml|ini|cfg|conf|properties|xml|txt|csv"
_WORDS = r"(?:[._-][\w.-]*)?"
"""What may be between a name and its ending, such as `.production`."""
_STORES = re.compile(
    # environment files, also as copies of editors
    r"[.#]?\.env(?:rc)?(?:[._~#-].*|\d*)|.*\.env"
    r"|\.dev\.vars(?:\..*)?|\.secrets?(?!\.baseline$)(?:\..*)?"
    r"|local\.settings\.json"
    # passwords and tokens of programs, mostly in the home folder
    r"|[._]netrc|\.npmrc|\.pypirc|\.pgpass|pgpass\.conf|\.my\.cnf|\.mylogin\.cnf"
    r"|\.?htpasswd|\.git-credentials|\.credentials(?:\.json)?|\.dockercfg|\.dockerconfigjson"
    r"|\.s3cfg|\.boto|\.databrickscfg|\.vault[_-](?:token|pass(?:word)?)(?:\.txt)?"
    r"|credentials\.tfrc\.json|\.terraformrc|\.sentryclirc|\.ftpconfig"
    r"|\.(?:msmtp|esmtp|fetchmail)rc|rclone\.conf|ngrok\.ya?ml|\.\w+_history"
    r"|application_default_credentials\.json|accesstokens\.json"
    # what Terraform was given, and what it knows
    r"|.*\.tfvars(?:\.json)?|.*\.tfstate(?:\..*)?"
)
"""Names of files that are secret in each folder."""
_PROGRAMS = re.compile(
    r"(?:^|/)\.(?:aws/(?:credentials|config|(?:sso|cli)/cache/.*)|azure/[^/]+|config/gcloud/.*"
    r"|config/gh/hosts\.yml|docker/config\.json|kube/config|m2/settings\.xml"
    r"|gradle/gradle\.properties|(?:gem|cargo)/credentials(?:\.toml)?"
    r"|git/config|vscode/sftp\.json|kaggle/kaggle\.json|gnupg/.*"
    r"|ssh/(?!config$|known_hosts|authorized_keys)[^/]+(?<!\.pub))$"
)
"""Ends of paths, in folders that programs keep."""
_USUAL = re.compile(
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
"""Names of files that are secret outside the folders of tests."""
_CODE = frozenset(
    (
        *("py", "pyi", "js", "jsx", "ts", "tsx", "mjs", "cjs", "vue", "svelte"),
        *("go", "rs", "c", "h", "cc", "cpp", "hpp", "cs", "java", "kt", "scala"),
        *("rb", "php", "swift", "lua", "ex", "exs", "sh", "sql", "css", "scss"),
        *("html", "md", "rst", "svg", "png"),
    )
)
"""Endings of files that are code or texts, whatever their names say."""
_TEMPLATE = re.compile(
    r"(?:^|[._-])(?:examples?|samples?|templates?|tmpl|tpl|dist|dummy|fake|schema)"
    r"(?:[._-]|$)"
)
"""Part of a file's name that says that nothing in it is true."""
_FIXTURES = re.compile(
    r"(?:^|/)(?:tests?|testing|test[_-]?data|testsuite|e2e|specs?|fixtures?|mocks?"
    r"|__(?:fixtures|tests|mocks)__)/"
)
"""Folders of tests, whose keys are made up."""
_TRANSLATIONS = re.compile(
    r"(?:^|/)(?:locales?|i18n|l10n|intl|lang|languages|translations|messages)/"
)
"""Folders of texts that users of a program see, perhaps about passwords."""
_PUBLIC = re.compile(
    r"(?:.*[._-])?(?:public|pub|certs?|certificates?|ca|cacerts?|(?:full)?chain)"
    r"(?:[._-].*)?\.pem"
)
"""Names of keys and certificates that everybody may see. What they hold decides."""
_COPY = re.compile(
    r"#(?P<locked>.+)#|(?P<copied>.+?)(?:~|\.(?:bak|backup|old|orig|save|rej))"
    r"|\.(?P<edited>.+)\.sw[opx]"
)
"""Names that editors and users give to a copy of a file."""
_COPY_ENDINGS = (
    *("#", "~", ".bak", ".backup", ".old", ".orig", ".save", ".rej"),
    *(".swo", ".swp", ".swx"),
)
"""Their endings, which are found faster."""
_OF_PROCESSES = re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?environ")
"""The variables of processes, keys among them."""
_ENCRYPTED = re.compile(r"(?:^|/)(?:sealed|encrypted)[_-]?secrets?\b|\.enc(?:\.\w+)?$")

_KEY_TEXT = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    # the end of the line, as it is in a text, JSON, YAML or code
    rb"(?:\\[nr]|[\s\"'+,>|#*-])*"
    rb"(?:[A-Za-z-]+: ?[^\r\n]*[\r\n]+\s*)*"
    rb"[A-Za-z0-9+/=]{40}"
    rb"|^PuTTY-User-Key-File-\d|\bAGE-SECRET-KEY-1[A-Z0-9]{50}"
    rb"|^PrivateKey[ \t]*=[ \t]*[A-Za-z0-9+/]{43}=",
    re.MULTILINE,
)
_SERVICE_TEXT = re.compile(rb'"type"\s*:\s*"service_account"')
_WORDS_OF_KEYS = (b"PRIVATE KEY", b"private_key", b"Private", b"SECRET-KEY")
"""One of these is in each text of a key. They are looked for first: it is faster."""
_ACCESS_TEXTS = {
    ".yarnrc.yml": re.compile(rb"npmAuth(?:Token|Ident):[ \t]*[\"']?[^\s\"'$]"),
    "nuget.config": re.compile(rb"cleartextpassword", re.IGNORECASE),
    ".cdd/config.yaml": re.compile(rb"\bheaders[\"']?[ \t]*:"),
}
"""By the end of the path of a file that is not secret as such."""


class HiddenFile(Struct, frozen=True):
    """A file or folder of a project that is kept from models."""

    path: str
    why: str
    """A clause about the file, such as `it is listed in .cddignore`."""


class HiddenFiles:
    """The answer for one project, as its files are now. Ignore files are read once."""

    def __init__(self, root: Path, *, allowed: Collection[str] = ()) -> None:
        """`allowed` are the paths of files that the user shows to models."""
        self._root = root.resolve()
        self._allowed = allowed
        self._lists: dict[PurePosixPath, FolderLists] = {}

    def why(self, path: str, data: bytes | None = None) -> str:
        """Return the reason why a file is hidden; empty if models may see it. `data` is
        its content, which is read if it is not given. The path is relative to the root
        and need not exist.
        """
        if path in self._allowed:
            return ""
        if why := self.why_by_name(path):
            return why
        if data is None:
            with suppress(OSError, RuntimeError, ValueError):
                place = str((self._root / path).resolve())
                data = read_beginning(place, LARGEST_SEARCHED)
        return secret_in(path, data or b"")

    def why_by_name(self, path: str) -> str:
        """Return the reason without looking into the file. Its links are followed."""
        if path in self._allowed:
            return ""
        for place in dict.fromkeys((path, self._without_links(path))):
            if is_secret_path(place):
                return BY_NAME
            if _RECORD_OF_STEP.fullmatch(place):
                return _KEPT
            if found := self._ignoring_list(PurePosixPath(place)):
                return listed_in(found)
        return ""

    def _without_links(self, path: str) -> str:
        """Return where a path leads: relative to the root, or absolute outside."""
        try:
            place = (self._root / path).resolve()
        except (OSError, RuntimeError, ValueError):
            return path
        if place.is_relative_to(self._root):
            return place.relative_to(self._root).as_posix()
        return place.as_posix()

    def _ignoring_list(self, path: PurePosixPath) -> str:
        """Return the name of the list that keeps a path, or a folder above it, from
        models; empty if there is none.
        """
        if path.is_absolute() or ".." in path.parts or not path.parts:
            return ""
        if path.parts[:2] == (".cdd", "prompts"):
            return ""
        is_for_models = path.parts[0] == ".cdd" or path.name in INSTRUCTIONS
        for place in (*reversed(path.parents[:-1]), path):
            lists = self._lists_in(place.parent)
            is_folder = place != path or (self._root / path).is_dir()
            found = lists.list_for_models(place.name, is_folder=is_folder)
            if not found and not is_for_models:
                found = lists.list_of_the_user(place.name, is_folder=is_folder)
            if found:
                return found.name
        return ""

    def _lists_in(self, folder: PurePosixPath) -> FolderLists:
        if folder not in self._lists:
            if folder.parts:
                above = self._lists_in(folder.parent)
                lists = above.inner(folder.name)
            else:
                lists = lists_from_top(self._root)
            self._lists[folder] = lists.with_own(READ_NAMES)
        return self._lists[folder]


def listed_in(name: str) -> str:
    """Return the reason for a file that the ignore file of this name lists."""
    return f"it is listed in {name}"


def is_secret_path(path: str) -> bool:
    """True if a file of this name is likely to hold keys or passwords. The folders in
    `path` count too. The file need not exist.
    """
    folder, slash, name = path.replace("\\", "/").rpartition("/")
    if path.endswith(_COPY_ENDINGS) and (copy := _COPY.fullmatch(name)):
        original = copy[copy.lastgroup or 0]
        return _is_secret_name(f"{folder}{slash}{original}") or _is_secret_name(path)
    return _is_secret_name(path)


def _is_secret_name(path: str) -> bool:
    suffix = path.rpartition(".")[2]
    if suffix in _CODE and not path.rpartition("/")[2].startswith("."):
        return False
    name = path.casefold().replace("\\", "/")
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name).casefold()
    last = name.rpartition("/")[2]
    is_store = _STORES.fullmatch(last) or _OF_PROCESSES.fullmatch(name)
    if not is_store and (name.startswith(".") or "/." in name):
        is_store = _PROGRAMS.search(name)
    if not is_store and not (_USUAL.fullmatch(last) and not _is_no_secret(name, last)):
        return False
    return not _TEMPLATE.search(last) and not _ENCRYPTED.search(name)


def _is_no_secret(path: str, name: str) -> bool:
    """True if a file with the name of a secret is a made-up or a public one."""
    return bool(
        _FIXTURES.search(path) or _TRANSLATIONS.search(path) or _PUBLIC.fullmatch(name)
    )


def secret_in(path: str, data: bytes) -> str:
    """Return the reason why this content of a file is secret; empty if it is not. Keys
    in the folders of tests are made up.
    """
    folded = path.casefold()
    last = folded.split("/")[-2:]
    access = _ACCESS_TEXTS.get(last[-1]) or _ACCESS_TEXTS.get("/".join(last))
    if access and access.search(data):
        return _ACCESS
    if not any(word in data for word in _WORDS_OF_KEYS) or _FIXTURES.search(folded):
        return ""
    searched = data[:LARGEST_SEARCHED]
    if b'"private_key"' in searched and _SERVICE_TEXT.search(searched):
        return _SERVICE_ACCOUNT
    return _PRIVATE_KEY if _KEY_TEXT.search(searched) else ""
