import test from 'ava'
import * as fc from 'fast-check'
import { Slots } from '../../../../runtime/kernel/threads/slots.js'

test('any sequence of operations finds each item under its number, and no other', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 20 }), { maxLength: 200 }), (moves) => {
        const slots = new Slots<{ readonly at: number }>()
        const known = new Map<number, { readonly at: number }>()
        for (const [at, move] of moves.entries()) {
          if (move < 12) {
            const item = { at }
            const slot = slots.add(item)
            if (known.has(slot)) return false
            known.set(slot, item)
          } else {
            const slot = move - 12
            if (slots.take(slot) !== known.get(slot)) return false
            known.delete(slot)
          }
          if (slots.size !== known.size) return false
        }
        for (let slot = 0; slot < moves.length; slot += 1) {
          if (slots.get(slot) !== known.get(slot)) return false
        }
        const all = new Set(slots.all())
        return all.size === known.size && [...known.values()].every((item) => all.has(item))
      }),
    ),
  )
})

test('numbers are reused, so there are no more than were needed at once', (t) => {
  const slots = new Slots<object>()
  for (let round = 0; round < 1_000; round += 1) {
    const pair = [slots.add({}), slots.add({})]
    t.true(Math.max(...pair) < 2)
    for (const slot of pair) slots.take(slot)
  }
  slots.add({})
  slots.clear()
  t.is(slots.size, 0)
  t.is(slots.add({}), 0)
})
