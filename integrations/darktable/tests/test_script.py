"""The Lua script with a stand-in for darktable's API: it parses, and the shell gets the command that is meant."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "ungrain.lua"
LUA = next((path for name in ("lua", "lua5.4", "lua5.3", "luajit") if (path := shutil.which(name))), None)
PROGRAM = os.environ.get("UNGRAIN", "ungrain")
pytestmark = [pytest.mark.skipif(LUA is None, reason="lua is missing"),
              pytest.mark.skipif(shutil.which(PROGRAM) is None, reason="the program is missing")]

# What the script uses of darktable; exporting copies a file, and what is imported is printed.
DARKTABLE = """
local stored = {program = os.getenv("UNGRAIN"), options = os.getenv("OPTIONS")}
local dt = {configuration = {check_version = function() end}, control = {}, database = {}, gui = {libs = {image = {}}},
            preferences = {register = function() end, read = function(_, name) return stored[name] end}}
function dt.new_format() return {write_image = function(_, image, path)
  os.execute("cp '" .. image.path .. "/source.tif' '" .. path .. "'") end} end
function dt.control.execute(command)
  local done = os.execute(command)
  return (done == true or done == 0) and 0 or 1
end
function dt.database.import(path) print("imported " .. path) return {group_with = function() end} end
function dt.print(text) print(text) end
function dt.gui.create_job() return {} end
function dt.gui.libs.image.register_action(_, _, action) dt.action = action end
dt.gui.action_images = {{path = os.getenv("FOLDER"), filename = "it's a photo.CR2", group_leader = {}}}
package.preload["darktable"] = function() return dt end
dofile(os.getenv("SCRIPT"))
dt.action()
"""


def run(folder, options=""):
    (folder / "test.lua").write_text(DARKTABLE)
    environment = {**os.environ, "UNGRAIN": shutil.which(PROGRAM), "FOLDER": str(folder), "SCRIPT": str(SCRIPT), "OPTIONS": options}
    return subprocess.run([LUA, "test.lua"], cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.pgm").write_bytes(b"P5\n32 32\n255\n" + bytes((7 * i * i) % 256 for i in range(1024)))
    subprocess.run([PROGRAM, "a.pgm", "-o", "source.tif", "--method", "box", "--radius", "0", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def test_the_result_lies_beside_the_original(folder):
    assert f"imported {folder}/it's a photo.ungrain.tif" in run(folder, "--method nlm --sigma 12")
    assert (folder / "it's a photo.ungrain.tif").exists()
    assert f"imported {folder}/it's a photo.ungrain-1.tif" in run(folder)  # nothing is written over


def test_options_are_no_commands(folder):
    assert "characters" in run(folder, "; touch stolen")
    assert not (folder / "stolen").exists()


def test_a_failure_is_told(folder):
    assert "could not be denoised" in run(folder, "--method nothing")
