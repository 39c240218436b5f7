/** What an inline ask costs beside the function call it replaces. */
import { defineActor } from '../../runtime/kernel/actor.js'
import { spawnInline } from '../../runtime/kernel/inline.js'
import { address, type Ask } from '../../runtime/kernel/protocol.js'
import { compare, publish, saturate } from '../harness.js'

type AddProtocol = {
  add: Ask<{ a: number; b: number; lane?: string }, { tag: 'sum'; sum: number }>
}

const adder = defineActor<AddProtocol, Record<never, never>>({
  address: address<AddProtocol>('adder'),
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 256 },
  lane: { add: ({ lane }) => lane },
  create: () => ({ add: async ({ a, b }) => ({ tag: 'sum', sum: a + b }) }),
})

const plain = async ({ a, b }: { a: number; b: number }) => ({ tag: 'sum', sum: a + b })
const { ref, stop } = spawnInline(adder, {})
const copying = spawnInline(adder, {}, { cloneMessages: true })
let count = 0

await publish(
  await compare({
    name: 'inline asks, 64 in flight',
    reference: {
      name: 'async function',
      run: (ms) => saturate(ms, 64, () => plain({ a: 1, b: 2 })),
    },
    contenders: [
      { name: 'ask', run: (ms) => saturate(ms, 64, () => ref.ask('add', { a: 1, b: 2 })) },
      {
        name: 'ask in one of 1000 lanes',
        run: (ms) =>
          saturate(ms, 64, () => ref.ask('add', { a: 1, b: 2, lane: `lane${count++ % 1000}` })),
      },
      {
        name: 'ask, messages copied',
        run: (ms) => saturate(ms, 64, () => copying.ref.ask('add', { a: 1, b: 2 })),
      },
    ],
  }),
)
await stop()
await copying.stop()
