import unittest

from candidate import add


class TestAdd(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(add(1, 2), 3)


if __name__ == "__main__":
    unittest.main()
