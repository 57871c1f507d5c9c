"""A molecule with shares drawn on its bonds and between its atoms (extra `chem`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

from isopursuit.errors import ParameterError, optional
from isopursuit.show._style import BLUE, ORANGE, SKY, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def molecule_svg(
    symbols: Sequence[str],
    bonds: Sequence[tuple[int, int]],
    shares: Mapping[tuple[int, int], float],
    *,
    size: tuple[int, int] = (480, 360),
    least: float = 0.05,
) -> str:
    """A molecule as SVG text, with pairs of atoms marked by their shares (extra `chem`).

    For picked torsions, the pairs are their axes or the bonds that turn them.

    Parameters
    ----------
    symbols : sequence of str
        The chemical symbols of the atoms, which are drawn with their numbers, including hydrogens.
    bonds : sequence of pairs of int
        Pairs of bonded atoms.
    shares : mapping of pairs of int to float
        Shares from 0 to 1. A bond becomes a band whose width grows with its share, and a pair without a bond becomes a
        line. Both are labelled with the percentage.
    size : pair of int
        Width and height in pixels.
    least : float
        Pairs with smaller shares are not marked.

    Examples
    --------
    >>> molecule_svg("OHH", [(0, 1), (0, 2)], {(0, 1): 0.75}).startswith("<?xml")
    True
    """
    return str(_draw_molecule("MolDraw2DSVG", size, symbols, bonds, shares, least))


def plot_molecule(
    symbols: Sequence[str],
    bonds: Sequence[tuple[int, int]],
    shares: Mapping[tuple[int, int], float],
    ax: Axes | None = None,
    *,
    least: float = 0.05,
) -> Axes:
    """A molecule with pairs of atoms marked by their shares, as `molecule_svg` draws it (extras `plot` and `chem`)."""
    ax = new_axes(ax)
    from matplotlib.image import imread

    ax.imshow(imread(BytesIO(_draw_molecule("MolDraw2DCairo", (960, 720), symbols, bonds, shares, least))))
    ax.set_axis_off()
    return ax


def _draw_molecule(
    canvas: Literal["MolDraw2DSVG", "MolDraw2DCairo"],
    size: tuple[int, int],
    symbols: Sequence[str],
    bonds: Sequence[tuple[int, int]],
    shares: Mapping[tuple[int, int], float],
    least: float,
) -> Any:
    Geometry, rdMolDraw2D = (_rdkit(name) for name in ("Geometry", "Chem.Draw.rdMolDraw2D"))
    atoms = {a for pair in (*bonds, *shares) for a in pair}
    if not atoms <= set(range(len(symbols))):
        raise ParameterError(f"bonds and shares name atoms {sorted(atoms)}; the molecule has {len(symbols)}.")
    marked = {frozenset(pair): float(share) for pair, share in shares.items() if share >= least}
    molecule = depicted(symbols, bonds)
    bands: dict[int, float] = {}
    for number, pair in enumerate(bonds):
        if frozenset(pair) in marked:
            bands[number] = marked.pop(frozenset(pair))
            molecule.GetBondWithIdx(number).SetProp("bondNote", f"{bands[number]:.0%}")
    drawing: Any = getattr(rdMolDraw2D, canvas)(*size)
    options = drawing.drawOptions()
    options.prepareMolsBeforeDrawing = False
    options.padding = 0.02
    options.annotationFontScale = 0.7
    options.setBondNoteColour(_rgb(BLUE))
    for i, symbol in enumerate(symbols):
        options.atomLabels[i] = f"{symbol}{i}"
    colours = {number: [(*_rgb(SKY), 0.8)] for number in bands}
    widths = {number: 1 + round(6 * share) for number, share in bands.items()}
    drawing.DrawMoleculeWithHighlights(molecule, "", {}, colours, {}, widths)
    drawing.SetFontSize(0.7 * drawing.FontSize())
    drawing.SetColour(_rgb(ORANGE))
    for pair, share in marked.items():
        start, end = (drawing.GetDrawCoords(a) for a in sorted(pair))
        drawing.SetLineWidth(1 + round(24 * share))
        drawing.DrawLine(start, end, rawCoords=True)
        # at a third of the line, because lines may cross in the middle
        third = Geometry.Point2D((2 * start.x + end.x) / 3, (2 * start.y + end.y) / 3)
        drawing.DrawString(f"{share:.0%}", third, rawCoords=True)
    drawing.FinishDrawing()
    return drawing.GetDrawingText()


def depicted(symbols: Sequence[str], bonds: Sequence[tuple[int, int]]) -> Any:
    """An RDKit molecule with these single bonds, in the given order, and a place in the plane for each atom."""
    Chem, rdDepictor = _rdkit("Chem"), _rdkit("Chem.rdDepictor")
    molecule: Any = Chem.RWMol()
    for symbol in symbols:
        try:
            atom = Chem.Atom(symbol)
        except RuntimeError:
            raise ParameterError(
                f"{symbol!r} is not the symbol of an element. Use symbols such as 'C' and 'Cl'."
            ) from None
        atom.SetNoImplicit(True)
        molecule.AddAtom(atom)
    for i, j in bonds:
        molecule.AddBond(int(i), int(j), Chem.BondType.SINGLE)
    molecule.UpdatePropertyCache(strict=False)
    Chem.FastFindRings(molecule)
    rdDepictor.Compute2DCoords(molecule)
    return molecule


def _rdkit(name: str) -> Any:
    return optional(f"rdkit.{name}", "chem", "Drawing molecules")


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue
