import test from 'ava'
import type { AnyDefinition } from '../../../runtime/kernel/actor.js'
import {
  askCycles,
  inline,
  inOrderOfAsks,
  pool,
  placement,
  placementsOf,
  strandedAsks,
  thread,
} from '../../../runtime/kernel/placement.js'
import { address } from '../../../runtime/kernel/protocol.js'

const actor = (name: string, ...asks: string[]): AnyDefinition => ({
  address: address(name),
  asks: Object.fromEntries(asks.map((asked) => [asked, address(asked)])),
  mailbox: { capacity: 1, inflightMax: 1 },
})
const names = (placements: readonly { definition: AnyDefinition }[]) =>
  placements.map(({ definition }) => definition.address.name)

test('an ask of an actor that sits in another plane only is stranded', (t) => {
  const placements = [
    placement(actor('tokens'), inline, 'auth'),
    placement(actor('delegation', 'tokens'), inline, 'auth', 'control'),
    placement(actor('upkeep', 'nobody'), thread('night'), 'async'),
  ]
  t.deepEqual(strandedAsks(placements), [
    'control: delegation asks tokens',
    'async: upkeep asks nobody',
  ])
})

test('asks that meet in every plane are not stranded', (t) => {
  const placements = [
    placement(actor('delegation', 'tokens'), inline, 'auth'),
    placement(actor('tokens'), pool('sums', { threadsMax: 2 }), 'auth', 'control'),
  ]
  t.deepEqual(strandedAsks(placements), [])
})

test('a circle of asks is found and named, a diamond is none', (t) => {
  const diamond = [
    placement(actor('top', 'left', 'right'), inline, 'p'),
    placement(actor('left', 'bottom'), inline, 'p'),
    placement(actor('right', 'bottom'), inline, 'p'),
    placement(actor('bottom'), inline, 'p'),
  ]
  t.deepEqual(askCycles(diamond), [])
  const circle = [...diamond.slice(0, 3), placement(actor('bottom', 'top'), inline, 'p')]
  t.deepEqual(askCycles(circle)[0], ['top', 'left', 'bottom', 'top'])
  t.deepEqual(askCycles([placement(actor('self', 'self'), inline, 'p')]), [['self', 'self']])
})

test('whoever is asked comes first', (t) => {
  const placements = [
    placement(actor('a', 'b', 'c'), inline, 'p'),
    placement(actor('b', 'c'), inline, 'p'),
    placement(actor('c'), inline, 'p'),
    placement(actor('d', 'a'), inline, 'p'),
  ]
  t.deepEqual(names(inOrderOfAsks(placements)), ['c', 'b', 'a', 'd'])
})

test('a process fills the placements of its planes', (t) => {
  const placements = [
    placement(actor('x'), inline, 'auth', 'control'),
    placement(actor('y'), inline, 'async'),
    placement(actor('z'), inline, 'control'),
  ]
  t.deepEqual(names(placementsOf(placements, ['control'])), ['x', 'z'])
  t.deepEqual(names(placementsOf(placements, ['auth', 'async'])), ['x', 'y'])
})
