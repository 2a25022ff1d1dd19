"""Tests of the composed cases: python -m unittest discover training"""

import collections
import glob
import os
import random
import unittest

import compose

HERE = os.path.dirname(os.path.abspath(__file__))


class Composed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scenes = compose.read(sorted(glob.glob(os.path.join(HERE, "scenes", "*.jsonl"))))
        rng = random.Random(3)
        cls.groups = [compose.group(s, n, rng) for s in cls.scenes for n in range(4)]

    def test_scenes_fit_the_form(self):
        self.assertGreater(len(self.scenes), 0)
        self.assertEqual([], [(s["id"], f) for s in self.scenes for f in compose.faults(s)])
        twice = [k for k, n in collections.Counter(s["id"] for s in self.scenes).items() if n > 1]
        self.assertEqual([], twice)

    def test_marks_are_exact_substrings(self):
        for group in self.groups:
            for case in group:
                said = [case["question"], *(t["text"] for t in case["history"])]
                for mark in case["settled_by"]:
                    self.assertTrue(any(mark in s for s in said), (case["id"], mark))
                for p in case["passages"]:
                    self.assertIn(p["answer"], p["text"], case["id"])
                    self.assertIn(p["condition"], p["text"], case["id"])

    def test_labels_follow_from_what_is_live(self):
        for group in self.groups:
            for case in group:
                ids = {p["id"] for p in case["passages"]}
                self.assertTrue(set(case["live"]) <= ids, case["id"])
                self.assertTrue(not case["pre"] or case["post"], case["id"])
                if case["kind"] == "settled":
                    self.assertEqual(1, len(case["live"]), case["id"])
                    self.assertTrue(case["settled_by"], case["id"])
                if case["post"]:
                    answers = {p["answer"].lower() for p in case["passages"] if p["id"] in case["live"]}
                    self.assertGreater(len(answers), 1, case["id"])
                    self.assertFalse(case["settled_by"], case["id"])

    def test_dialogues_alternate_and_slots_are_filled(self):
        for group in self.groups:
            for case in group:
                for k, turn in enumerate(case["history"]):
                    self.assertEqual(("user", "assistant")[k % 2], turn["role"], case["id"])
                texts = [case["question"], *(t["text"] for t in case["history"]),
                         *(p["text"] for p in case["passages"])]
                self.assertFalse([t for t in texts if "{" in t or "}" in t], case["id"])

    def test_both_labels_are_common(self):
        cases = [c for g in self.groups for c in g]
        share = sum(c["post"] for c in cases) / len(cases)
        self.assertTrue(0.3 < share < 0.6, share)

    def test_the_same_seed_gives_the_same_cases(self):
        one, two = (compose.group(self.scenes[0], 1, random.Random(5)) for _ in range(2))
        self.assertEqual(one, two)


if __name__ == "__main__":
    unittest.main()
