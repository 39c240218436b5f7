import { defineActor } from '../../../../runtime/kernel/actor.js'
import type { Compute } from '../../../../runtime/kernel/threads/pool.js'
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { ByteStream } from '../../../../runtime/kernel/stream.js'
import type * as compute from './words-compute.js'

// The protocol: what can be asked, and every outcome there can be.
export type WordsProtocol = {
  put: Ask<{ book: string; text: string }, { tag: 'kept'; words: number } | { tag: 'too_long' }>
  read: Ask<{ book: string; body: ByteStream }, { tag: 'kept'; words: number }>
}
// `put` is idempotent: the kernel may send it again when its thread died.
export const words = address<WordsProtocol>('words', { idempotent: ['put'] })

type Needs = { compute: Compute<typeof compute>; charactersMax: number }

export const wordsActor = defineActor<WordsProtocol, Needs>({
  address: words,
  asks: {},
  mailbox: { capacity: 256, inflightMax: 16 },
  // Messages about one book run one after another, messages about two books side by side.
  lane: { put: ({ book }) => book, read: ({ book }) => book },
  create: ({ compute, charactersMax }) => {
    const books = new Map<string, number>()
    const keep = async (book: string, text: string, context: { signal: AbortSignal }) => {
      const count = await compute.run('countWords', text, context)
      books.set(book, count)
      return { tag: 'kept', words: count } as const
    }
    return {
      async put({ book, text }, context) {
        if (text.length > charactersMax) return { tag: 'too_long' }
        return keep(book, text, context)
      },
      async read({ book, body }, context) {
        const chunks: Uint8Array[] = []
        for await (const chunk of body) chunks.push(chunk)
        return keep(book, Buffer.concat(chunks).toString(), context)
      },
    }
  },
})
