import test from 'ava'

test('placeholder until the tree stands', (t) => t.pass())
