"""The widget: a layer, a method with its options, a button. The work is done in a thread of its own."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import napari.layers
import numpy as np
import ungrain
from magicgui.widgets import ComboBox, Container, FloatSlider, Label, LineEdit, ProgressBar, PushButton, create_widget
from napari.qt.threading import create_worker
from qtpy.QtCore import QTimer

from ._arrays import IMAGES, KINDS, VOLUMES, denoise_array, kinds_for, methods_for
from ._options import AUTO, controls_for, given, number

_EVERY = 100  # milliseconds between looks at the progress


class _Job:
    """A run: what the thread and the widget tell each other."""

    def __init__(self) -> None:
        self.fraction = 0.0
        self.stop = threading.Event()

    def progress(self, fraction: float) -> bool:
        self.fraction = fraction
        return not self.stop.is_set()


@dataclass
class _Outcome:
    result: np.ndarray | None = None
    error: Exception | None = None


def _devices() -> list[str]:
    return [AUTO, *dict.fromkeys(device.name for device in ungrain.devices() if device.usable and device.name != "reference")]


class DenoiseWidget(Container):
    """Denoises an image layer into a new one."""

    def __init__(self, napari_viewer: Any) -> None:  # napari gives the viewer to a parameter of this name alone
        super().__init__(labels=True)
        viewer = self._viewer = napari_viewer
        self._job: _Job | None = None
        self._worker: Any = None
        self._options: list[Any] = []
        self.layer = create_widget(annotation=napari.layers.Image, label="layer")
        self.kind = ComboBox(label="is", choices=list(KINDS), tooltip="what the axes before the last two are")
        self.method = ComboBox(label="method", choices=methods_for(IMAGES))
        self.sigma = LineEdit(label="sigma", value=AUTO, tooltip="the noise's standard deviation in pixel values; auto: measured")
        self.strength = FloatSlider(label="strength", min=0, max=2, value=1, tooltip="takes less away, or more")
        self.keep_grain = FloatSlider(label="keep grain", min=0, max=1, value=0, tooltip="the share of what was removed that is put back")
        self.device = ComboBox(label="device", choices=_devices())
        self.more = Container(labels=True, label="more", visible=False)
        self.show_more = PushButton(text="More options", tooltip="all parameters of the method")
        self.start = PushButton(text="Denoise")
        self.cancel = PushButton(text="Cancel", enabled=False)
        self.bar = ProgressBar(label="", min=0, max=1000, value=0)
        self.said = Label(value="")
        self.extend([self.layer, self.kind, self.method, self.sigma, self.strength, self.keep_grain, self.device, self.show_more, self.more,
                     self.start, self.cancel, self.bar, self.said])
        self._timer = QTimer(self.native)
        self._timer.setInterval(_EVERY)
        self._timer.timeout.connect(self._show_progress)
        self.layer.changed.connect(self._layer_changed)
        self.kind.changed.connect(self._kind_changed)
        self.method.changed.connect(self._method_changed)
        self.show_more.changed.connect(lambda _: setattr(self.more, "visible", not self.more.visible))
        self.start.changed.connect(lambda _: self.run())
        self.cancel.changed.connect(lambda _: self.stop())
        viewer.layers.events.inserted.connect(self.reset_choices)
        viewer.layers.events.removed.connect(self.reset_choices)
        self._method_changed(self.method.value)
        self._layer_changed(self.layer.value)

    def reset_choices(self, *_: Any) -> None:
        """The layers of the viewer changed; which one is chosen may have changed with them, without a signal."""
        self.layer.reset_choices()  # the other boxes keep their choices
        self._layer_changed(self.layer.value)

    def _layer_changed(self, layer: Any) -> None:
        kinds = list(KINDS) if layer is None else kinds_for(len(_array(layer).shape), layer.rgb)
        _offer(self.kind, kinds or [IMAGES])
        self.start.enabled = layer is not None and bool(kinds) and self._job is None

    def _kind_changed(self, kind: str) -> None:
        if kind is not None:  # which it is while the choices are exchanged
            _offer(self.method, methods_for(kind))

    def _method_changed(self, method: str) -> None:
        if method is None:
            return
        self._options = controls_for(method)
        self.more.clear()
        self.more.extend(self._options)

    def arguments(self) -> dict[str, Any]:
        """What denoise_array is called with, besides the array."""
        layer = self.layer.value
        values: dict[str, Any] = {
            "method": self.method.value, "kind": self.kind.value, "rgb": bool(layer.rgb), "sigma": number(self.sigma.value),
            "strength": self.strength.value, "keep_grain": self.keep_grain.value, "device": self.device.value,
            **given(self.method.value, self._options)}
        if self.kind.value == VOLUMES:
            values["spacing"] = tuple(abs(float(size)) for size in np.asarray(layer.scale)[-3:])
        return values

    def run(self) -> None:
        """Starts the work; the result becomes a layer when it is done."""
        layer = self.layer.value
        if layer is None or self._job is not None:
            return
        arguments = self.arguments()
        self._job = job = _Job()
        self.start.enabled, self.cancel.enabled = False, True
        self.said.value = ""
        worker = self._worker = create_worker(_work, _array(layer), arguments, job)
        worker.returned.connect(lambda outcome: self._finished(layer, arguments, outcome))
        worker.start()
        self._timer.start()

    def stop(self) -> None:
        if self._job is not None:
            self._job.stop.set()

    def _show_progress(self) -> None:
        if self._job is not None:
            self.bar.value = round(1000 * self._job.fraction)

    def _finished(self, layer: Any, arguments: dict[str, Any], outcome: _Outcome) -> None:
        self._timer.stop()
        self._job = self._worker = None
        self.bar.value = 0
        self.cancel.enabled, self.start.enabled = False, self.layer.value is not None
        if isinstance(outcome.error, ungrain.Cancelled):
            self.said.value = "cancelled"
        elif outcome.error is not None:
            self.said.value = str(outcome.error) or type(outcome.error).__name__
        else:
            self.said.value = f"{layer.name}: done"
            self._viewer.add_image(outcome.result, **_looks(layer, arguments))


def _offer(box: ComboBox, choices: list[str]) -> None:
    """Other choices; what is chosen stays where it still can be, and becomes the first where it cannot."""
    if list(box.choices) == choices:
        return
    kept = box.value
    box.choices = choices
    box.value = kept if kept in choices else choices[0]


def _array(layer: Any) -> Any:
    """The layer's samples; of a pyramid those of the largest level."""
    return layer.data[0] if layer.multiscale else layer.data


def _work(array: Any, arguments: dict[str, Any], job: _Job) -> _Outcome:
    """Never raises: whatever goes wrong is shown in the widget, which can then be used again."""
    try:
        return _Outcome(denoise_array(array, progress=job.progress, **arguments))
    except Exception as error:
        return _Outcome(error=error)


def _looks(layer: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The new layer lies where the old one lies, and looks like it."""
    looks = {"name": f"{layer.name} {arguments['method']}", "rgb": layer.rgb, "scale": layer.scale, "translate": layer.translate,
             "rotate": layer.rotate, "shear": layer.shear, "blending": layer.blending, "opacity": layer.opacity,
             "metadata": {**layer.metadata, "ungrain": {**arguments, "version": ungrain.__version__}}}
    if not layer.rgb:
        looks |= {"colormap": layer.colormap, "contrast_limits": layer.contrast_limits, "gamma": layer.gamma}
    return looks
