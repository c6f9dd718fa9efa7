#!/usr/bin/env python3
"""Serves the Python functions of a module as custom columns of an Anabranch dataset.

    python anabranch_worker.py my_columns.py

The module's functions are written as for DataDesigner:

    from anabranch_worker import custom_column_generator

    @custom_column_generator(required_columns=["name"], side_effect_columns=["length"], model_aliases=["writer"])
    def greeting(row, generator_params, models):
        text, _ = models["writer"].generate(prompt=f"Greet {row['name']}")
        row["greeting"] = text
        row["length"] = len(text)
        return row

and the configuration names the function:

    - column_type: custom
      name: greeting
      worker: {command: [python3, anabranch_worker.py, my_columns.py]}
      generator_function: greeting

A module that uses `data_designer.config.custom_column_generator` works as it is, whether that package is installed or
not. A function takes one to three arguments: the row as a dict (or all rows of a group as a pandas DataFrame, or as a
list of dicts without pandas), the column's parameters, and the models. Functions may be `async`. Several calls run at a
time, in threads. What a function prints goes to stderr. An exception fails its row; one with the attribute
`transient = True`, a `ConnectionError` or a `TimeoutError` is tried again.

One file, standard library only, Python 3.9 or newer. The protocol is documented in `crates/dataset/src/custom/mod.rs`.
"""

import asyncio
import dataclasses
import importlib
import importlib.util
import inspect
import json
import math
import os
import sys
import threading
import traceback
import types
from concurrent.futures import ThreadPoolExecutor

MAX_CALLS = 64
METADATA = "custom_column_metadata"


def custom_column_generator(required_columns=None, side_effect_columns=None, model_aliases=None):
    """Declares what a function reads, fills besides its column, and asks."""

    def decorate(function):
        setattr(function, METADATA, {
            "required_columns": list(required_columns or []),
            "side_effect_columns": list(side_effect_columns or []),
            "model_aliases": list(model_aliases or []),
        })
        return function

    return decorate


class ModelError(Exception):
    """A model could not be asked, or did not reply."""

    def __init__(self, error):
        super().__init__(error.get("message", "the model failed"))
        self.error_class = error.get("class", "model")
        self.transient = bool(error.get("transient", False))


class Model:
    """One model, asked through the dataset build, which limits, retries and records the calls."""

    def __init__(self, alias, call):
        self.alias = alias
        self._call = call

    def generate(self, prompt, system_prompt=None, parser=None, **_):
        """The model's reply (parsed, if there is a parser) and the messages of the conversation."""
        messages = [{"role": "system", "content": system_prompt}] if system_prompt else []
        messages.append({"role": "user", "content": prompt})
        text = self._call.ask(self.alias, messages)
        messages.append({"role": "assistant", "content": text})
        return (parser(text) if parser else text), messages

    async def agenerate(self, prompt, **options):
        """The same for async functions."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, lambda: self.generate(prompt, **options))


class Models(dict):
    """The models by alias."""

    def __init__(self, call):
        super().__init__()
        self._call = call

    def __missing__(self, alias):
        self[alias] = Model(alias, self._call)
        return self[alias]


class Params(dict):
    """The parameters of a column, by key or by attribute."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the column has no parameter `{name}`") from None


class Call:
    """One call, which may ask models while it runs."""

    def __init__(self, server, request):
        self.server = server
        self.request = request
        self.lock = threading.Lock()
        self.questions = 0
        self.answers = {}

    def ask(self, alias, messages):
        answered = threading.Event()
        with self.lock:
            self.questions += 1
            number = self.questions
            self.answers[number] = [answered, None]
        self.server.send({"id": self.request["id"], "ask": number, "model": alias, "messages": messages})
        answered.wait()
        with self.lock:
            reply = self.answers.pop(number)[1]
        if "error" in reply:
            raise ModelError(reply["error"])
        return reply["text"]

    def answer(self, line):
        with self.lock:
            waiting = self.answers.get(line["answer"])
        if waiting:
            waiting[1] = line
            waiting[0].set()


class Server:
    """Reads calls, runs functions, writes answers."""

    def __init__(self, module, lines, out):
        self.module = module
        self.lines = lines
        self.out = out
        self.out_lock = threading.Lock()
        self.calls = {}
        self.pool = ThreadPoolExecutor(max_workers=MAX_CALLS)
        self.loop = None
        self.loop_lock = threading.Lock()

    def send(self, message):
        line = json.dumps(plain(message), ensure_ascii=False, allow_nan=False)
        with self.out_lock:
            self.out.write(line.encode("utf-8", "replace") + b"\n")
            self.out.flush()

    def serve(self):
        hello = json.loads(next(self.lines))
        found = {}
        for name in hello["functions"]:
            function = getattr(self.module, name, None)
            if callable(function):
                found[name] = declared(function)
        for name, function in vars(self.module).items():
            if hasattr(function, METADATA):
                found.setdefault(name, declared(function))
        self.send({"ready": True, "functions": found})
        for line in self.lines:
            if not line.strip():
                continue
            request = json.loads(line)
            if "answer" in request:
                call = self.calls.get(request["id"])
                if call:
                    call.answer(request)
                continue
            call = Call(self, request)
            self.calls[request["id"]] = call
            self.pool.submit(self.run, call)

    def run(self, call):
        request = call.request
        try:
            answer = self.fill(call, getattr(self.module, request["function"]))
            answer["id"] = request["id"]
            self.send(answer)
        except BaseException as error:  # also SystemExit of user code: the worker goes on
            traceback.print_exc(file=sys.stderr)
            self.send({"id": request["id"], "error": described(error)})
        finally:
            self.calls.pop(request["id"], None)

    def fill(self, call, function):
        request = call.request
        names = [request["column"], *metadata(function).get("side_effect_columns", [])]
        if "row" in request:
            row = request["row"]
            result = self.invoke(function, dict(row), call)
            return {"values": picked(result, names, row)}
        rows = request["rows"]
        result = records(self.invoke(function, frame(rows), call))
        if len(result) != len(rows):
            raise ValueError(f"the function returned {len(result)} rows for {len(rows)}")
        return {"rows": [picked(filled, names, row) for filled, row in zip(result, rows)]}

    def invoke(self, function, rows, call):
        parameters = list(inspect.signature(function).parameters.values())[:3]
        arguments = [rows]
        if len(parameters) > 1:
            arguments.append(typed(call.request.get("params"), function, parameters[1]))
        if len(parameters) > 2:
            arguments.append(Models(call))
        result = function(*arguments)
        if inspect.isawaitable(result):
            result = asyncio.run_coroutine_threadsafe(awaited(result), self.event_loop()).result()
        return result

    def event_loop(self):
        with self.loop_lock:
            if self.loop is None:
                self.loop = asyncio.new_event_loop()
                threading.Thread(target=self.loop.run_forever, daemon=True).start()
            return self.loop


async def awaited(result):
    return await result


def metadata(function):
    found = getattr(function, METADATA, None) or {}
    return found if isinstance(found, dict) else vars(found)


def declared(function):
    """What the first answer says about a function."""
    about = {key: list(value) for key, value in metadata(function).items()
             if key in ("required_columns", "side_effect_columns") and value is not None}
    first = next(iter(inspect.signature(function).parameters), None)
    strategy = {"row": "cell_by_cell", "df": "full_column"}.get(first)
    if strategy:
        about["generation_strategy"] = strategy
    return about


def typed(params, function, parameter):
    """The parameters as the class with which the function annotates them, if it does."""
    kind = parameter.annotation
    if isinstance(kind, str):
        kind = getattr(function, "__globals__", {}).get(kind)
    if params is None or kind is None or kind is type(None):
        return None if params is None else Params(params)
    if hasattr(kind, "model_validate"):
        return kind.model_validate(params)
    if dataclasses.is_dataclass(kind):
        return kind(**params)
    return Params(params)


def frame(rows):
    try:
        import pandas
    except ImportError:
        return [dict(row) for row in rows]
    return pandas.DataFrame(rows)


def records(result):
    if hasattr(result, "to_dict") and hasattr(result, "columns"):
        return result.to_dict(orient="records")
    if isinstance(result, list):
        return result
    raise TypeError(f"the function returned {type(result).__name__}, expected a DataFrame or a list of dicts")


def picked(result, names, row):
    """The declared columns of a result."""
    if not isinstance(result, dict):
        raise TypeError(f"the function returned {type(result).__name__}, expected the row as a dict")
    missing = [name for name in names if name not in result]
    if missing:
        raise KeyError(f"the function did not set {', '.join(missing)}")
    extra = [str(name) for name in result if name not in names and name not in row]
    if extra:
        raise KeyError(f"the function set {', '.join(extra)}: add it to side_effect_columns")
    return {name: result[name] for name in names}


def plain(value):
    """The value as JSON has it."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    for method in ("model_dump", "tolist", "item", "isoformat"):
        if hasattr(value, method):
            return plain(getattr(value, method)())
    if dataclasses.is_dataclass(value):
        return plain(dataclasses.asdict(value))
    raise TypeError(f"a {type(value).__name__} cannot be a value of a column")


def described(error):
    """An exception as the protocol has it: the last line of its traceback, and where it was raised."""
    message = traceback.format_exception_only(type(error), error)[-1].strip()
    place = traceback.extract_tb(error.__traceback__)
    if place and os.path.abspath(place[-1].filename) != os.path.abspath(__file__):
        message = f"{message} ({os.path.basename(place[-1].filename)}, line {place[-1].lineno})"
    transient = getattr(error, "transient", isinstance(error, (ConnectionError, TimeoutError)))
    return {
        "class": getattr(error, "error_class", type(error).__name__),
        "message": message,
        "transient": bool(transient),
    }


def provide_imports():
    """Lets modules import this file, and DataDesigner's decorator where that package is not installed."""
    sys.modules.setdefault("anabranch_worker", sys.modules[__name__])
    try:
        importlib.import_module("data_designer.config")
    except ImportError:
        package, config = types.ModuleType("data_designer"), types.ModuleType("data_designer.config")
        config.custom_column_generator = custom_column_generator
        package.config = config
        sys.modules.setdefault("data_designer", package)
        sys.modules.setdefault("data_designer.config", config)


def load(path):
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"`{path}` is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: python anabranch_worker.py my_columns.py")
    # The protocol keeps the real stdout; whatever else is printed goes to stderr.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    lines = iter(sys.stdin.buffer)
    provide_imports()
    server = Server(None, lines, out)
    try:
        server.module = load(sys.argv[1])
    except BaseException as error:
        traceback.print_exc(file=sys.stderr)
        server.send({"error": described(error)})
        os._exit(1)
    server.serve()
    # Functions that still run have nobody to answer to.
    os._exit(0)


if __name__ == "__main__":
    main()
