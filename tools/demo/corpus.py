"""The training text: Python sources installed on this machine, of the standard library and of packages under
permissive licences; and the byte-level BPE tokenizer made from them."""

import hashlib
import random
import sysconfig
from pathlib import Path

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

PACKAGES = """
numpy scipy sympy networkx pandas matplotlib sklearn skimage torch torchvision transformers accelerate peft jax flax
optax numba llvmlite pytest _pytest requests urllib3 aiohttp jinja2 werkzeug click rich pygments mpmath statsmodels
seaborn joblib tqdm attr yaml packaging setuptools pip fsspec einops numpyro botorch gpytorch chex equinox diffrax
triton onnx onnxscript tensorboard PIL imageio tifffile hypothesis coverage httpx httpcore h11 anyio filelock typer
markdown_it sacrebleu timm lightning torchmetrics
""".split()

SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]  # ids 0, 1, 2
VOCAB_SIZE = 4096
# Words with one leading character, single digits, punctuation, line ends, spaces.
PRE_TOKENIZER = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
HELD_OUT = 0.005  # share of the tokens kept from training


def is_usable(text):
    """Neither tiny nor huge, no data tables in one line, mostly ASCII."""
    if not 400 < len(text) < 200_000 or max(map(len, text.split("\n"))) > 400:
        return False
    return sum(ord(char) > 127 for char in text) <= 0.01 * len(text)


def read_sources():
    """The usable source files, each content once, in a fixed shuffled order."""
    paths = sysconfig.get_paths()
    roots = [Path(paths["stdlib"])] + [Path(paths["purelib"]) / name for name in PACKAGES]
    seen, texts = set(), []
    for root in roots:
        for file in sorted(root.glob("**/*.py")):
            try:
                text = file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            digest = hashlib.md5(text.encode()).digest()
            if is_usable(text) and digest not in seen:
                seen.add(digest)
                texts.append(text)
    random.Random(0).shuffle(texts)
    return texts


def train_tokenizer(texts):
    """Byte-level BPE; encoding with special tokens puts <|endoftext|> first."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRE_TOKENIZER), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts[:4000], trainer)
    first = SPECIAL_TOKENS[0]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A", pair=f"{first} $A $B:1", special_tokens=[(first, 0)]
    )
    return tokenizer


def encode_corpus(tokenizer_file=None):
    """Returns (tokenizer, all tokens [n] uint16): the files one after another, each behind <|endoftext|>."""
    texts = read_sources()
    characters = sum(map(len, texts))
    print(f"corpus {len(texts)} files {characters / 1e6:.1f} MB", flush=True)
    tokenizer = Tokenizer.from_file(str(tokenizer_file)) if tokenizer_file else train_tokenizer(texts)
    parts = []
    for start in range(0, len(texts), 512):
        for encoding in tokenizer.encode_batch(texts[start : start + 512], add_special_tokens=False):
            parts.append(np.array([0] + encoding.ids, dtype=np.uint16))
    tokens = np.concatenate(parts)
    print(f"tokens {len(tokens) / 1e6:.1f} M, {characters / len(tokens):.2f} bytes/token", flush=True)
    return tokenizer, tokens


def split_held_out(tokens):
    """(training tokens, held-out tokens), both int32."""
    cut = int(len(tokens) * (1 - HELD_OUT))
    return tokens[:cut].astype(np.int32), tokens[cut:].astype(np.int32)
