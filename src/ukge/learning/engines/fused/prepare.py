"""What a batch needs before its arithmetic: its negatives, its ground rules, and who touches which entity.

Random numbers are a hash of (seed, epoch, place), so a batch is the same whatever thread prepares it and whenever.
"""

from __future__ import annotations

import numpy as np

from ukge.compiled import kernel
from ukge.learning.engines.fused.ops import OPTIONS, compiled, first_at_least, inlined
from ukge.learning.engines.fused.records import Triple

TRIES = 16
DIGIT = 13
PLACE_BITS = 32
PLACE_MASK = (1 << PLACE_BITS) - 1
LOW_BITS = (1 << 32) - 1
allocating = kernel(**{**OPTIONS, "_nrt": True})


@inlined
def mix(x):  # type: ignore[no-untyped-def]
    """Return a well-mixed 64-bit hash of a counter (the finaliser of SplitMix64)."""
    z = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def below(n, bits):  # type: ignore[no-untyped-def]
    """Return a number in [0, n) from 64 random bits."""
    return np.int64(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@compiled
def is_observed(keys, key):  # type: ignore[no-untyped-def]
    """Return whether `key` occurs in the sorted `keys`."""
    at = first_at_least(keys, len(keys), key)
    return at < len(keys) and keys[at] == key


@compiled
def corrupt(kept, relation, is_tail, counter, sampling, members):  # type: ignore[no-untyped-def]
    """Draw one entity for the corrupted place of a fact whose other place holds `kept`.

    With `members` by relation, only entities seen at that place of the relation are drawn; otherwise one of `members`
    in `by_degree` of 2³² cases, and any entity in the others. With `observed` keys, an observed fact is drawn again;
    where a relation's range is exhausted, the draw moves on to the next entity outside it. Only a head with every
    entity as an observed tail has no unseen fact to offer, and keeps its last draw.
    """
    n, observed = sampling.n_entities, sampling.observed
    entity = np.int64(0)
    for attempt in range(TRIES):
        bits = mix(counter + np.uint64(attempt) * np.uint64(0xD1B54A32D192ED03))
        if len(members.offsets) > 0:
            first, last = members.offsets[relation], members.offsets[relation + 1]
            entity = np.int64(members.entities[first + below(last - first, bits)])
        elif bits & np.uint64(LOW_BITS) < sampling.by_degree:
            # `below` takes the high bits, so that the low ones may decide.
            entity = np.int64(members.entities[below(len(members.entities), bits)])
        else:
            entity = below(n, bits)
        if len(observed) == 0 or is_unseen(kept, relation, is_tail, entity, n, observed):
            return entity
    for step in range(1, n):
        other = (entity + step) % n
        if is_unseen(kept, relation, is_tail, other, n, observed):
            return other
    return entity


@compiled
def draw_corruptions(fact, counter, sampling, n_negatives, out, tails, heads):  # type: ignore[no-untyped-def]
    """Draw the corrupted tails of a fact to out[tails:] and its corrupted heads to out[heads:]."""
    n = sampling.n_entities
    if len(sampling.observed) == 0 and len(sampling.heads.offsets) == 0 and sampling.by_degree == 0:
        # The paper's own way, and what training waits for: no look-ups, no second tries.
        for j in range(n_negatives):
            even = counter + np.uint64(2 * j)
            out[tails + j] = below(n, mix(even))
            out[heads + j] = below(n, mix(even + np.uint64(1)))
        return
    for j in range(n_negatives):
        even = counter + np.uint64(2 * j)
        odd = even + np.uint64(1)
        out[tails + j] = corrupt(fact.head, fact.relation, True, even, sampling, sampling.tails)
        out[heads + j] = corrupt(fact.tail, fact.relation, False, odd, sampling, sampling.heads)


@compiled
def is_unseen(kept, relation, is_tail, entity, n, observed):  # type: ignore[no-untyped-def]
    """Return whether the fact with `entity` at its corrupted place is not an observed one."""
    head, tail = (kept, entity) if is_tail else (entity, kept)
    return not is_observed(observed, (np.int64(relation) * n + head) * n + tail)


@compiled
def radix_pass(source, target, n_keys, shift, mask, counts):  # type: ignore[no-untyped-def]
    """Move source[:n_keys] to target in the stable order of the bits `mask` of each key, which `shift` brings down."""
    for i in range(mask + 2):
        counts[i] = 0
    for i in range(n_keys):
        counts[((source[i] >> shift) & mask) + 1] += 1
    for i in range(mask + 1):
        counts[i + 1] += counts[i]
    for i in range(n_keys):
        pair = source[i]
        digit = (pair >> shift) & mask
        target[counts[digit]] = pair
        counts[digit] += 1


@compiled
def sort_occurrences(keys, bound, pairs, spare, counts):  # type: ignore[no-untyped-def]
    """Write to `pairs` the occurrences of the keys, all below `bound`, in stable order of their keys.

    An occurrence is one number, its key above its place: whoever walks them then reads memory in order. Each pass takes
    at most 13 bits.
    """
    n_keys = len(keys)
    bits = 1
    while (bound - 1) >> bits > 0:
        bits += 1
    passes = (bits + DIGIT - 1) // DIGIT
    digit = (bits + passes - 1) // passes
    mask = np.int64((1 << digit) - 1)
    source, target = (spare, pairs) if passes % 2 == 1 else (pairs, spare)
    for i in range(n_keys):
        source[i] = (np.int64(keys[i]) << PLACE_BITS) | i
    for step in range(passes):
        radix_pass(source, target, n_keys, PLACE_BITS + step * digit, mask, counts)
        source, target = target, source


@compiled
def group_by_key(keys, pairs, lone_from, order, rows, starts):  # type: ignore[no-untyped-def]
    """Write the distinct keys in ascending order to `rows` and where each begins in `order`; return how many.

    A key that occurs once only, at a place from `lone_from` on, is left out of all that and marked: it becomes ~key.
    """
    n_keys = len(keys)
    n_rows, kept, begin = 0, 0, 0
    while begin < n_keys:
        key = pairs[begin] >> PLACE_BITS
        place = pairs[begin] & PLACE_MASK
        end = begin + 1
        if place >= lone_from and (end == n_keys or pairs[end] >> PLACE_BITS != key):
            keys[place] = ~key
            begin = end
            continue
        rows[n_rows] = key
        starts[n_rows] = kept
        n_rows += 1
        order[kept] = place
        kept += 1
        while end < n_keys and pairs[end] >> PLACE_BITS == key:
            order[kept] = pairs[end] & PLACE_MASK
            kept += 1
            end += 1
        begin = end
    starts[n_rows] = kept
    return n_rows


@allocating
def prepare_batch(  # type: ignore[no-untyped-def]
    number, first, epoch, facts, rules, sampling, prepared, by_entity, by_relation
):
    """Draw the corruptions and ground rules of one batch and index its occurrences.

    An occurrence is numbered so: head of row i, tail of row i, corrupted tail (i, j), corrupted head (i, j), where rows
    are the facts followed by the ground rules. With `mark_lone`, a corruption e whose entity occurs nowhere else in the
    batch is written as ~e and left out of the index: whoever scores it may optimise it.
    """
    _, _, size, n_negatives = prepared.drawn.shape
    start = first + number * size
    n_facts, n_rules = prepared.n_facts[number], prepared.n_rules[number]
    n_rows = n_facts + n_rules
    n_seen = 2 * n_rows + 2 * n_facts * n_negatives
    entities = np.empty(n_seen, np.int32)
    relations = np.empty(n_rows, np.int32)
    for i in range(n_facts):
        place = epoch.order[start + i]
        prepared.facts[number, i] = place
        fact = Triple(facts.head[place], facts.relation[place], facts.tail[place])
        entities[i], relations[i], entities[n_rows + i] = fact
        counter = epoch.key + np.uint64(start + i) * np.uint64(2 * n_negatives)
        tails, heads = 2 * n_rows + i * n_negatives, 2 * n_rows + (n_facts + i) * n_negatives
        draw_corruptions(fact, counter, sampling, n_negatives, entities, tails, heads)
    for i in range(n_rules):
        # A stream of its own: ground rules must not move with the corruptions.
        pick = below(len(rules.head), mix(mix(epoch.key ^ np.uint64(0xA5A5A5A5)) + np.uint64(start + i)))
        prepared.rules[number, i] = pick
        entities[n_facts + i] = rules.head[pick]
        entities[n_rows + n_facts + i] = rules.tail[pick]
        relations[n_facts + i] = rules.relation[pick]
    spare = np.empty((2, n_seen), np.int64)
    counts = np.empty((1 << DIGIT) + 1, np.int32)
    lone_from = 2 * n_rows if sampling.mark_lone else n_seen
    index_occurrences(entities, sampling.n_entities, lone_from, by_entity, number, spare, counts)
    index_occurrences(relations, sampling.n_relations, n_rows, by_relation, number, spare, counts)
    for i in range(n_facts):
        for j in range(n_negatives):
            prepared.drawn[number, 0, i, j] = entities[2 * n_rows + i * n_negatives + j]
            prepared.drawn[number, 1, i, j] = entities[2 * n_rows + (n_facts + i) * n_negatives + j]


@allocating
def index_occurrences(keys, bound, lone_from, index, number, spare, counts):  # type: ignore[no-untyped-def]
    """Fill the index of one batch, as `group_by_key` does."""
    sort_occurrences(keys, bound, spare[0], spare[1], counts)
    order, rows, starts = index.order[number], index.rows[number], index.starts[number]
    index.n[number] = group_by_key(keys, spare[0], lone_from, order, rows, starts)


@kernel(nogil=True, error_model="numpy")
def prepare_batches(  # type: ignore[no-untyped-def]
    begin, end, first, epoch, facts, rules, sampling, prepared, by_entity, by_relation
):
    """Prepare batches begin…end, whose numbers of facts and rules are set; batch 0 starts at place `first`."""
    for number in range(begin, end):
        prepare_batch(number, first, epoch, facts, rules, sampling, prepared, by_entity, by_relation)
