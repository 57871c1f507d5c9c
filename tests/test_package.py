import importlib
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import isopursuit
from isopursuit._core.options import SubsetOptions
from isopursuit.data._units import DEFAULT_UNITS

ROOT = Path(__file__).parents[1]


def test_every_public_name_resolves():
    for name in isopursuit.__all__:
        assert getattr(isopursuit, name).__doc__, name


def test_select_has_the_default_unit_of_the_one_table():
    assert inspect.signature(isopursuit.select).parameters["unit"].default == DEFAULT_UNITS["matrices"]


@pytest.mark.parametrize(
    "function", ["exact_search", "exchange_search", "greedy_search", "brute_search", "select_pointwise", "stability"]
)
def test_an_unknown_option_is_a_type_error_that_suggests_the_nearest(function):
    with pytest.raises(TypeError, match=rf"{function}\(\) got an unexpected option 'exlude'. Did you mean 'exclude'"):
        getattr(isopursuit, function)([[1.0, 0.0]], exlude=[1])


def test_the_options_that_other_functions_share_are_those_of_select():
    assert SubsetOptions.__annotations__.keys() <= inspect.signature(isopursuit.select).parameters.keys()


def test_importing_loads_nothing_optional():
    code = (
        "import sys, isopursuit; "
        "print([m for m in ('matplotlib', 'sklearn', 'pandas', 'cvxpy', 'torch', 'dask', 'numba', 'scipy.optimize') "
        "if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_missing_extra_is_an_import_error_that_says_what_to_install():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "try:\n    import isopursuit.estimators\nexcept ImportError as error:\n    print(error)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told == "isopursuit.estimators needs sklearn. Install isopursuit[sklearn], or sklearn itself.\n"


def test_the_package_says_that_it_is_typed():
    assert (importlib.resources.files("isopursuit") / "py.typed").is_file()


def test_the_build_files_name_the_same_build_tools():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert set(project["build-system"]["requires"]) <= set(project["dependency-groups"]["build"])
