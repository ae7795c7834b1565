"""Small source files in the encodings of real projects."""

from pathlib import Path
from typing import Self

from msgspec import Struct
from msgspec.structs import replace


class Encoded(Struct, frozen=True):
    """A file of a project, and its expected appearance for readers."""

    path: str
    text: str
    codec: str
    shown_name: str
    """Empty for UTF-8."""
    word: str
    """A word of the text with non-ASCII characters."""
    declared: str = ""
    """The charset that `.editorconfig` declares for it."""
    mark: bytes = b""

    @property
    def data(self) -> bytes:
        return self.mark + self.text.encode(self.codec)

    @property
    def note(self) -> str:
        return f"in {self.shown_name}" if self.shown_name else ""

    def write(self, root: Path) -> Path:
        if self.declared:
            setting = f"root = true\n[{self.path}]\ncharset = {self.declared}\n"
            (root / ".editorconfig").write_text(setting)
        place = root / self.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(self.data)
        return place

    def of_length(self, size: int) -> Self:
        """Repeat the text until it has more bytes than this."""
        times = size // len(self.text.encode(self.codec)) + 2
        return replace(self, text=self.text * times)


WESTERN = """\
def greeting(name):
    # Grüße für jeden Käufer
    return "Schöne Grüße, " + name


def farewell(name):
    return "Auf Wiederhören, Frau Müller"
"""
CHINESE = """\
def total(prices):
    # 计算所有价格的总和
    return sum(prices)


def refund(order):
    return "已经退款给客户"
"""
JAPANESE = """\
def total(prices):
    # すべての価格の合計を計算する
    return sum(prices)


def refund(order):
    return "お客様に返金しました"
"""
CYRILLIC = """\
def total(prices):
    # Считает сумму всех цен заказа
    return sum(prices)


def refund(order):
    return "Деньги возвращены покупателю"
"""
_CODING_LINE = "# -*- coding: iso-8859-15 -*-\n"

ENCODED = (
    Encoded("shop.py", WESTERN, "utf-8", "", "Grüße"),
    Encoded("shop.py", WESTERN, "utf-8", "", "Grüße", mark=b"\xef\xbb\xbf"),
    Encoded("shop.py", WESTERN, "utf-16-le", "utf-16-le", "Grüße", mark=b"\xff\xfe"),
    Encoded("shop.py", CHINESE, "utf-16-be", "utf-16-be", "退款", mark=b"\xfe\xff"),
    Encoded("shop.py", WESTERN, "cp1252", "cp1252", "Grüße", "windows-1252"),
    Encoded("shop.py", WESTERN, "cp1252", "cp1252, guessed", "Grüße"),
    Encoded(
        "shop.py", _CODING_LINE + WESTERN, "iso-8859-15", "iso8859-15", "Wiederhören"
    ),
    Encoded("shop.py", CYRILLIC, "cp1251", "cp1251, guessed", "Деньги"),
    Encoded("shop.py", CHINESE, "gbk", "gbk, guessed", "退款"),
    Encoded("shop.py", JAPANESE, "cp932", "cp932, guessed", "合計"),
    Encoded("shop.py", JAPANESE, "cp932", "cp932", "合計", "cp932"),
    Encoded(
        "shop.py", WESTERN.replace("\n", "\r\n"), "cp1252", "cp1252, guessed", "Grüße"
    ),
)
"""Each has two functions, `greeting` or `total` first."""
