"""Print the cost of the demo's run with some models: its tokens times the built-in
prices. Run it with `make cost`, or `make cost MODELS="openai/gpt-5.1"`.
"""

import json
import subprocess
import sys

from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.port import Usage

_MODELS = ("anthropic/claude-sonnet-5-5", "openai/gpt-5.1", "deepseek/deepseek-chat")


def count_tokens() -> tuple[int, Usage]:
    """Run the demo. Return the number of its model calls, and their tokens."""
    run = subprocess.run(
        [sys.executable, "-m", "cdd_agent", "demo", "--json"],
        capture_output=True,
        check=True,
        text=True,
    )
    calls = prompt = completion = 0
    for line in run.stdout.splitlines():
        event = json.loads(line)
        if event["event"] == "reply_finished":
            calls += 1
            prompt += event["usage"]["prompt_tokens"]
            completion += event["usage"]["completion_tokens"]
    return calls, Usage(prompt, completion)


def main() -> None:
    calls, usage = count_tokens()
    print(
        f"The demo: {calls} calls, {usage.prompt_tokens:,} tokens in,"
        f" {usage.completion_tokens:,} out"
    )
    for model in sys.argv[1:] or _MODELS:
        price = known_model(model).price
        cost = f"${price.cost_of(usage):.4f}" if price else "no known price"
        print(f"{model}: {cost}")


if __name__ == "__main__":
    main()
