"""Sets made of sets: a product over the parts of a pytree, a power over rows, a shift, a scaling."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from onesfw import trees
from onesfw.sets.base import ConvexSet, known
from onesfw.sets.parameters import Parameter, is_number, matched, numbers, positive
from onesfw.trees import Array, Tree


def is_set(node: object) -> bool:
    """Whether a node of a tree of sets is a set."""
    return isinstance(node, ConvexSet)


class Product(ConvexSet):
    """K₁ × K₂ × …: one set per subtree of x, so that the tree of sets is a prefix of x's tree.

    lmo(d) = (lmo₁(d₁), lmo₂(d₂), …), for ⟨d, v⟩ is a sum over the parts. The cost is the sum of theirs.

    Args:
        sets: a tuple, list or dictionary of sets, nested as x is.

    Raises:
        TypeError: where a leaf of the tree is no set.
        ValueError: where there is none.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> product = fw.sets.Product({"w": fw.sets.L1Ball(1.0, shape=2), "b": fw.sets.Box(-1.0, 1.0, shape=1)})
        >>> vertex = product.lmo({"w": jnp.array([3.0, 1.0]), "b": jnp.array([-2.0])})
        >>> vertex["w"].tolist(), vertex["b"].tolist()
        ([-1.0, 0.0], [1.0])
    """

    sets: Tree

    def __init__(self, sets: Tree) -> None:
        leaves = jax.tree.leaves(sets, is_leaf=is_set)
        if not leaves:
            raise ValueError("Product: the tree of sets is empty; give at least one set")
        for leaf in leaves:
            if not is_set(leaf):
                raise TypeError(f"Product: every leaf of the tree must be a set, got {leaf!r}")
        self.sets = sets

    def parts(self) -> list[ConvexSet]:
        """The sets, in the order of the tree's leaves."""
        return jax.tree.leaves(self.sets, is_leaf=is_set)

    def split(self, x: Tree) -> list[Tree]:
        """The subtree of x that belongs to each set."""
        structure: Tree = jax.tree.structure(self.sets, is_leaf=is_set)
        try:
            return structure.flatten_up_to(x)
        except (ValueError, TypeError) as error:
            raise ValueError(f"Product: x must have the tree of sets as a prefix of its own tree: {error}") from None

    def join(self, parts: list[Tree]) -> Tree:
        """A tree with one subtree per set."""
        return jax.tree.unflatten(jax.tree.structure(self.sets, is_leaf=is_set), parts)

    def lmo(self, d: Tree) -> Tree:
        """The oracle of every part on its own subtree."""
        return self.join([part.lmo(g) for part, g in zip(self.parts(), self.split(d), strict=True)])

    def lmo_memory(self, like: Tree) -> Tree:
        """The memory of every part."""
        return tuple(part.lmo_memory(g) for part, g in zip(self.parts(), self.split(like), strict=True))

    def lmo_from(self, d: Tree, memory: Tree) -> tuple[Tree, Tree]:
        """`lmo_from` of every part."""
        done = [part.lmo_from(g, m) for part, g, m in zip(self.parts(), self.split(d), memory, strict=True)]
        return self.join([vertex for vertex, _ in done]), tuple(new for _, new in done)

    def template(self) -> Tree | None:
        """The templates of the parts; None as soon as one is not known."""
        shapes = [part.template() for part in self.parts()]
        return None if any(shape is None for shape in shapes) else self.join(shapes)

    def without_shape(self) -> str:
        """The first part that does not know its shape, and its place."""
        for path, part in jax.tree_util.tree_leaves_with_path(self.sets, is_leaf=is_set):
            if part.template() is None:
                return f"{part.without_shape()} at {jax.tree_util.keystr(path)} of the Product"
        return "Product"

    def sizes(self, name: str) -> list[float]:
        """`diameter` or `radius` of every part; a part that must know its shape for it is named."""
        found: list[float] = []
        for path, part in jax.tree_util.tree_leaves_with_path(self.sets, is_leaf=is_set):
            try:
                found.append(getattr(part, name))
            except TypeError as error:
                if part.template() is not None:
                    raise
                place = jax.tree_util.keystr(path)
                raise TypeError(
                    f"{part.without_shape()} at {place} of the Product does not know its shape: pass shape= to that set"
                ) from error
        return found

    def start(self, like: Tree) -> Tree:
        """The starts of the parts."""
        return self.join([part.start(g) for part, g in zip(self.parts(), self.split(like), strict=True)])

    def project(self, y: Tree) -> Tree:
        """The projections of the parts: ‖x − y‖² is a sum over them."""
        return self.join([part.project(g) for part, g in zip(self.parts(), self.split(y), strict=True)])

    def contains(self, x: Tree, tol: float = 1e-6) -> Array:
        """Whether every part contains its subtree."""
        inside = [part.contains(g, tol) for part, g in zip(self.parts(), self.split(x), strict=True)]
        return jnp.all(jnp.stack([jnp.asarray(each) for each in inside]))

    def bounds(self, like: Tree | None = None) -> tuple[Tree, Tree]:
        """The boxes around the parts."""
        likes = self.split(known(self, like))
        boxes = [part.bounds(g) for part, g in zip(self.parts(), likes, strict=True)]
        return self.join([lower for lower, _ in boxes]), self.join([upper for _, upper in boxes])

    @property
    def dear(self) -> bool:
        return any(part.dear for part in self.parts())

    @property
    def diameter(self) -> float:
        """√(Σ diameter²), exact where the parts' are."""
        return math.hypot(*self.sizes("diameter"))

    @property
    def radius(self) -> float:
        """√(Σ radius²), exact where the parts' are."""
        return math.hypot(*self.sizes("radius"))

    def in_box(self, low: float, high: float, like: Tree | None = None) -> bool:
        """Whether every part is."""
        likes = [None] * len(self.parts()) if like is None else self.split(like)
        return all(part.in_box(low, high, g) for part, g in zip(self.parts(), likes, strict=True))


class Power(ConvexSet):
    """Kⁿ: x holds n members of K along its first axis, as the rows of a matrix.

    lmo(d) = (lmo_K(d_1), …, lmo_K(d_n)), row by row. The cost is n times K's. `Product` is for sets that differ.

    Args:
        set: K.
        n: how many, at least 1.

    Raises:
        TypeError: where set is no set.
        ValueError: where n is no positive integer.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> policies = fw.sets.Power(fw.sets.Simplex(shape=3), 2)  # a distribution in each row
        >>> policies.lmo(jnp.array([[0.0, 1.0, -1.0], [-2.0, 0.0, 0.0]])).tolist()
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    set: ConvexSet
    n: int = eqx.field(static=True)

    def __init__(self, set: ConvexSet, n: int) -> None:
        self.set = checked(set, "Power")
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"Power: n must be a positive integer, got {n!r}")
        self.n = int(n)

    def rows(self, x: Tree) -> Tree:
        """x, whose leaves have n rows each; raises ValueError where they have not."""
        if any(np.shape(leaf)[:1] != (self.n,) for leaf in jax.tree.leaves(x)):
            raise ValueError(f"Power: x must have {self.n} rows along its first axis, got {trees.describe(x)}")
        return x

    def row(self, like: Tree) -> Tree:
        """The first row, zeros for K."""
        return jax.tree.map(lambda leaf: jnp.zeros(np.shape(leaf)[1:], leaf.dtype), self.rows(like))

    def repeated(self, row: Tree) -> Tree:
        """n times the same row."""
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.n, *leaf.shape)), row)

    def lmo(self, d: Tree) -> Tree:
        """K's oracle on every row."""
        return jax.vmap(self.set.lmo)(self.rows(d))

    def lmo_memory(self, like: Tree) -> Tree:
        """K's, for every row."""
        return self.repeated(self.set.lmo_memory(self.row(like)))

    def lmo_from(self, d: Tree, memory: Tree) -> tuple[Tree, Tree]:
        """K's vertex and memory for every row."""
        vertices: Tree
        vertices, memory = jax.vmap(self.set.lmo_from)(self.rows(d), memory)
        return vertices, memory

    def template(self) -> Tree | None:
        """K's, with an axis of length n before it."""
        template = self.set.template()
        if template is None:
            return None
        return jax.tree.map(
            lambda shape: (self.n, *shape), template, is_leaf=lambda node: all(isinstance(size, int) for size in node)
        )

    def without_shape(self) -> str:
        """K's."""
        return self.set.without_shape()

    def start(self, like: Tree) -> Tree:
        """K's start in every row."""
        return self.repeated(self.set.start(self.row(like)))

    def project(self, y: Tree) -> Tree:
        """K's projection of every row."""
        return jax.vmap(self.set.project)(self.rows(y))

    def contains(self, x: Tree, tol: float = 1e-6) -> Array:
        """Whether K contains every row."""
        return jnp.all(jax.vmap(lambda row: self.set.contains(row, tol))(self.rows(x)))

    def bounds(self, like: Tree | None = None) -> tuple[Tree, Tree]:
        """The box around K, n times."""
        lower, upper = self.set.bounds(self.row(known(self, like)))
        return self.repeated(lower), self.repeated(upper)

    @property
    def diameter(self) -> float:
        """√n · diameter_K."""
        return math.sqrt(self.n) * self.set.diameter

    @property
    def radius(self) -> float:
        """√n · radius_K."""
        return math.sqrt(self.n) * self.set.radius

    def in_box(self, low: float, high: float, like: Tree | None = None) -> bool:
        """K's answer."""
        return self.set.in_box(low, high, None if like is None else self.row(like))


class Shifted(ConvexSet):
    """{x + offset : x ∈ K}, the offset being a number, an array, or a pytree like x.

    lmo(d) = lmo_K(d) + offset. The cost is K's.

    Args:
        set: K.
        offset: what is added to every member: a number, an array or a pytree like x.

    Raises:
        TypeError: where set is no set, or the offset holds something that is no real number.
        ValueError: where the offset is empty or not finite.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> fw.sets.Shifted(fw.sets.L1Ball(1.0), [10.0, 20.0]).lmo(jnp.array([0.0, 1.0])).tolist()
        [10.0, 19.0]
    """

    set: ConvexSet
    offset: Tree

    def __init__(self, set: ConvexSet, offset: Tree) -> None:
        self.set = checked(set, "Shifted")
        self.offset = numbers(offset, "Shifted", "offset")

    def move(self, x: Tree) -> Tree:
        """x + offset."""
        return trees.add(x, matched(self.offset, x, "Shifted", "offset"))

    def back(self, x: Tree) -> Tree:
        """x − offset."""
        x = jax.tree.map(jnp.asarray, x)
        return trees.subtract(x, matched(self.offset, x, "Shifted", "offset"))

    def lmo(self, d: Tree) -> Tree:
        """lmo_K(d) + offset."""
        return self.move(self.set.lmo(d))

    def lmo_memory(self, like: Tree) -> Tree:
        """K's."""
        return self.set.lmo_memory(like)

    def lmo_from(self, d: Tree, memory: Tree) -> tuple[Tree, Tree]:
        """K's vertex, shifted, and K's memory."""
        vertex, memory = self.set.lmo_from(d, memory)
        return self.move(vertex), memory

    def template(self) -> Tree | None:
        """K's, or else the offset's where it is no plain number."""
        template = self.set.template()
        if template is None and not any(is_number(leaf) for leaf in jax.tree.leaves(self.offset)):
            return jax.tree.map(np.shape, self.offset)
        return template

    def without_shape(self) -> str:
        """K's."""
        return self.set.without_shape()

    def start(self, like: Tree) -> Tree:
        """K's start, shifted."""
        return self.move(self.set.start(like))

    def project(self, y: Tree) -> Tree:
        """project_K(y − offset) + offset."""
        return self.move(self.set.project(self.back(y)))

    def contains(self, x: Tree, tol: float = 1e-6) -> Array:
        """Whether K contains x − offset."""
        return self.set.contains(self.back(x), tol)

    def bounds(self, like: Tree | None = None) -> tuple[Tree, Tree]:
        """The box around K, shifted."""
        lower, upper = self.set.bounds(known(self, like))
        return self.move(lower), self.move(upper)

    @property
    def dear(self) -> bool:
        return self.set.dear

    @property
    def diameter(self) -> float:
        """K's."""
        return self.set.diameter

    @property
    def radius(self) -> float:
        """An upper bound: the least of radius_K + ‖offset‖ and the far corner of the box around the set."""
        offset = matched(self.offset, known(self, None), "Shifted", "offset")
        return min(self.set.radius + float(jnp.sqrt(trees.squared_norm(offset))), ConvexSet.radius.fget(self))  # type: ignore[attr-defined]


class Scaled(ConvexSet):
    """{factor · x : x ∈ K}, factor > 0.

    lmo(d) = factor · lmo_K(d). The cost is K's.

    Args:
        set: K.
        factor: positive.

    Raises:
        TypeError: where set is no set, or factor no number.
        ValueError: where factor is not positive and finite.

    Example:
        >>> import jax.numpy as jnp
        >>> import onesfw as fw
        >>> fw.sets.Scaled(fw.sets.Simplex(), 3.0).lmo(jnp.array([0.0, -1.0])).tolist()
        [0.0, 3.0]
    """

    set: ConvexSet
    factor: Parameter

    def __init__(self, set: ConvexSet, factor: float) -> None:
        self.set = checked(set, "Scaled")
        self.factor = positive(factor, "Scaled", "factor")

    def times(self, x: Tree) -> Tree:
        """factor · x."""
        return jax.tree.map(lambda leaf: jnp.asarray(self.factor, leaf.dtype) * leaf, x)

    def divisor(self, dtype: DTypeLike) -> Array:
        """The factor in x's dtype; one that is too small for it counts as its smallest normal number."""
        return jnp.maximum(jnp.asarray(self.factor, dtype), jnp.finfo(dtype).tiny)

    def divided(self, x: Tree) -> Tree:
        """x / factor."""
        return jax.tree.map(lambda leaf: jnp.asarray(leaf) / self.divisor(jnp.asarray(leaf).dtype), x)

    def lmo(self, d: Tree) -> Tree:
        """factor · lmo_K(d)."""
        return self.times(self.set.lmo(d))

    def lmo_memory(self, like: Tree) -> Tree:
        """K's."""
        return self.set.lmo_memory(like)

    def lmo_from(self, d: Tree, memory: Tree) -> tuple[Tree, Tree]:
        """K's vertex, scaled, and K's memory."""
        vertex, memory = self.set.lmo_from(d, memory)
        return self.times(vertex), memory

    def template(self) -> Tree | None:
        """K's."""
        return self.set.template()

    def without_shape(self) -> str:
        """K's."""
        return self.set.without_shape()

    def start(self, like: Tree) -> Tree:
        """K's start, scaled."""
        return self.times(self.set.start(like))

    def project(self, y: Tree) -> Tree:
        """factor · project_K(y / factor)."""
        return self.times(self.set.project(self.divided(y)))

    def contains(self, x: Tree, tol: float = 1e-6) -> Array:
        """Whether K contains x / factor; a factor below one does not make the tolerance finer than `tol`."""
        finest: Tree = tol * jnp.maximum(1.0, 1.0 / self.divisor(trees.dtype_of(jax.tree.map(jnp.asarray, x))))
        return self.set.contains(self.divided(x), finest)

    def bounds(self, like: Tree | None = None) -> tuple[Tree, Tree]:
        """The box around K, scaled."""
        lower, upper = self.set.bounds(like)
        return self.times(lower), self.times(upper)

    @property
    def dear(self) -> bool:
        return self.set.dear

    @property
    def diameter(self) -> float:
        """factor · diameter_K."""
        return float(self.factor) * self.set.diameter

    @property
    def radius(self) -> float:
        """factor · radius_K."""
        return float(self.factor) * self.set.radius

    def in_box(self, low: float, high: float, like: Tree | None = None) -> bool:
        """K's answer about the box, scaled back."""
        factor = float(self.factor)
        return self.set.in_box(low / factor, high / factor, like)


def checked(value: object, name: str) -> ConvexSet:
    """A set; raises TypeError for whatever else."""
    if not isinstance(value, ConvexSet):
        raise TypeError(f"{name}: set must be a set of onesfw.sets, got {value!r}")
    return value
