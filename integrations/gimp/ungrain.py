#!/usr/bin/env python3
"""ungrain for GIMP 3: Filters > Enhance > Denoise with ungrain. Runs the program on the layer, through a TIFF file of 32-bit floats
or of the image's own 8 or 16 bits.

Copy this file, executable, to plug-ins/ungrain/ungrain.py in GIMP's folder (Edit > Preferences > Folders > Plug-ins).
The program must be on the PATH, or be named by the environment variable UNGRAIN.
"""

import os
import shutil
import subprocess
import sys
import tempfile

METHODS = [("bm3d", "BM3D (measures the noise)"), ("ridge", "ridge: better, slower"), ("nlm", "non-local means"),
           ("bilateral", "bilateral"), ("median", "median: dots")]


def program():
    """The program's path, or None."""
    return shutil.which(os.environ.get("UNGRAIN", "ungrain"))


def arguments(source, target, method, strength, sigma, keep_grain):
    """The command line. A sigma of 0 is measured."""
    words = [program() or "ungrain", source, "-o", target, "--quiet", "--method", method, "--strength", f"{strength:g}"]
    if sigma > 0 and method != "median":  # which knows no noise
        words += ["--sigma", f"{sigma:g}"]
    if keep_grain > 0:
        words += ["--keep-grain", f"{keep_grain:g}"]
    return words


def denoise_file(source, target, method="bm3d", strength=1.0, sigma=0.0, keep_grain=0.0):
    """Runs the program; returns what went wrong in one line, or nothing."""
    if program() is None:
        return "the program ungrain was not found: put it on the PATH, or name it in the environment variable UNGRAIN"
    done = subprocess.run(arguments(source, target, method, strength, sigma, keep_grain), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if done.returncode:
        return (done.stdout.strip().splitlines() or [f"ungrain ended with status {done.returncode}"])[-1]
    return "" if os.path.exists(target) else "ungrain wrote no file"


def register():
    """What needs GIMP: everything above can be tried without it."""
    import gi

    gi.require_version("Gimp", "3.0")
    gi.require_version("GimpUi", "3.0")
    from gi.repository import Gimp, GimpUi, Gio, GLib, GObject

    def failed(procedure, text):
        error = GLib.Error.new_literal(Gimp.PlugIn.error_quark(), f"ungrain: {text}", 0)
        return procedure.new_return_values(Gimp.PDBStatusType.EXECUTION_ERROR, error)

    def layer_to_file(image, layer, path):
        """The layer alone, where it lies, as TIFF with the image's precision."""
        copy = Gimp.Image.new_with_precision(layer.get_width(), layer.get_height(), image.get_base_type(), image.get_precision())
        try:
            alone = Gimp.Layer.new_from_drawable(layer, copy)
            copy.insert_layer(alone, None, 0)
            alone.set_offsets(0, 0)
            if profile := image.get_color_profile():
                copy.set_color_profile(profile)
            Gimp.file_save(Gimp.RunMode.NONINTERACTIVE, copy, Gio.File.new_for_path(path), None)
        finally:
            copy.delete()

    def run(procedure, run_mode, image, drawables, config, data):
        if len(drawables) != 1 or not isinstance(drawables[0], Gimp.Layer):
            return failed(procedure, "choose one layer")
        layer = drawables[0]
        if run_mode == Gimp.RunMode.INTERACTIVE:
            GimpUi.init("ungrain")
            dialog = GimpUi.ProcedureDialog.new(procedure, config, "Denoise with ungrain")
            dialog.fill(None)
            accepted = dialog.run()
            dialog.destroy()
            if not accepted:
                return procedure.new_return_values(Gimp.PDBStatusType.CANCEL, GLib.Error())
        Gimp.progress_init("ungrain")
        with tempfile.TemporaryDirectory(prefix="ungrain-") as folder:
            before, after = os.path.join(folder, "before.tif"), os.path.join(folder, "after.tif")
            layer_to_file(image, layer, before)
            problem = denoise_file(before, after, config.get_property("method"), config.get_property("strength"),
                                   config.get_property("sigma"), config.get_property("keep-grain"))
            if problem:
                return failed(procedure, problem)
            result = Gimp.file_load_layer(Gimp.RunMode.NONINTERACTIVE, image, Gio.File.new_for_path(after))
        image.undo_group_start()
        try:
            result.set_name(f"{layer.get_name()} denoised")
            image.insert_layer(result, layer.get_parent(), image.get_item_position(layer))
            _, x, y = layer.get_offsets()
            result.set_offsets(x, y)
        finally:
            image.undo_group_end()
        Gimp.displays_flush()
        return procedure.new_return_values(Gimp.PDBStatusType.SUCCESS, GLib.Error())

    class Ungrain(Gimp.PlugIn):
        def do_set_i18n(self, name):
            return False

        def do_query_procedures(self):
            return ["plug-in-ungrain"]

        def do_create_procedure(self, name):
            procedure = Gimp.ImageProcedure.new(self, name, Gimp.PDBProcType.PLUGIN, run, None)
            procedure.set_image_types("RGB*, GRAY*")
            procedure.set_menu_label("Denoise with ungrain...")
            procedure.add_menu_path("<Image>/Filters/Enhance/")
            procedure.set_documentation("Removes noise and keeps edges", "The result is a layer above the one that was chosen.", name)
            procedure.set_attribution("ungrain", "Apache-2.0", "2026")
            choices = Gimp.Choice.new()
            for number, (method, label) in enumerate(METHODS):
                choices.add(method, number, label, "")
            readwrite = GObject.ParamFlags.READWRITE
            procedure.add_choice_argument("method", "_Method", "The method", choices, "bm3d", readwrite)
            procedure.add_double_argument("strength", "_Strength", "Takes less away, or more", 0, 4, 1, readwrite)
            procedure.add_double_argument("sigma", "S_igma", "The noise's standard deviation, 0 to 255; 0: measured", 0, 255, 0, readwrite)
            procedure.add_double_argument("keep-grain", "_Keep grain", "The share of it that is put back", 0, 1, 0, readwrite)
            return procedure

    Gimp.main(Ungrain.__gtype__, sys.argv)


if __name__ == "__main__":
    register()
