import test from 'ava'
import type { AnyDefinition } from '../../../runtime/kernel/actor.js'
import {
  askCycles,
  inline,
  inOrderOfAsks,
  pool,
  seat,
  seatsOf,
  strandedAsks,
  thread,
} from '../../../runtime/kernel/placement.js'
import { address } from '../../../runtime/kernel/protocol.js'

const actor = (name: string, ...asks: string[]): AnyDefinition => ({
  address: address(name),
  asks: Object.fromEntries(asks.map((asked) => [asked, address(asked)])),
  mailbox: { capacity: 1, inflightMax: 1 },
  lane: {},
})
const names = (seats: readonly { definition: AnyDefinition }[]) =>
  seats.map(({ definition }) => definition.address.name)

test('an ask of an actor that sits in another plane only is stranded', (t) => {
  const seats = [
    seat(actor('tokens'), inline, 'auth'),
    seat(actor('delegation', 'tokens'), inline, 'auth', 'control'),
    seat(actor('upkeep', 'nobody'), thread('night'), 'async'),
  ]
  t.deepEqual(strandedAsks(seats), ['control: delegation asks tokens', 'async: upkeep asks nobody'])
})

test('asks that meet in every plane are not stranded', (t) => {
  const seats = [
    seat(actor('delegation', 'tokens'), inline, 'auth'),
    seat(actor('tokens'), pool('sums', { threadsMax: 2 }), 'auth', 'control'),
  ]
  t.deepEqual(strandedAsks(seats), [])
})

test('a circle of asks is found and named, a diamond is none', (t) => {
  const diamond = [
    seat(actor('top', 'left', 'right'), inline, 'p'),
    seat(actor('left', 'bottom'), inline, 'p'),
    seat(actor('right', 'bottom'), inline, 'p'),
    seat(actor('bottom'), inline, 'p'),
  ]
  t.deepEqual(askCycles(diamond), [])
  const circle = [...diamond.slice(0, 3), seat(actor('bottom', 'top'), inline, 'p')]
  t.deepEqual(askCycles(circle)[0], ['top', 'left', 'bottom', 'top'])
  t.deepEqual(askCycles([seat(actor('self', 'self'), inline, 'p')]), [['self', 'self']])
})

test('whoever is asked comes first', (t) => {
  const seats = [
    seat(actor('a', 'b', 'c'), inline, 'p'),
    seat(actor('b', 'c'), inline, 'p'),
    seat(actor('c'), inline, 'p'),
    seat(actor('d', 'a'), inline, 'p'),
  ]
  t.deepEqual(names(inOrderOfAsks(seats)), ['c', 'b', 'a', 'd'])
})

test('a process fills the seats of its planes', (t) => {
  const seats = [
    seat(actor('x'), inline, 'auth', 'control'),
    seat(actor('y'), inline, 'async'),
    seat(actor('z'), inline, 'control'),
  ]
  t.deepEqual(names(seatsOf(seats, ['control'])), ['x', 'z'])
  t.deepEqual(names(seatsOf(seats, ['auth', 'async'])), ['x', 'y'])
})
