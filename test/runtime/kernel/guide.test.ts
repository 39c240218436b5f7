/** The example of docs/concepts/actor-runtime.md runs as printed. */
import { readFileSync } from 'node:fs'
import test from 'ava'
import { ActorUnavailable } from '../../../runtime/kernel/actor.js'
import { ByteStream } from '../../../runtime/kernel/stream.js'
import { words } from './guide/words.js'
import { startWords } from './guide/words-system.js'

const root = new URL('../../../../', import.meta.url)

for (const where of ['pool', 'thread'] as const) {
  test(`the example works in a ${where}`, async (t) => {
    const { system, metrics } = await startWords(where)
    t.teardown(() => system.stop())
    const ref = system.ref(words)

    t.deepEqual(await ref.put({ book: 'a', text: 'to be or not' }), {
      tag: 'kept',
      words: 4,
    })
    t.deepEqual(await ref.put({ book: 'a', text: 'x'.repeat(1001) }), { tag: 'too_long' })
    const body = ByteStream.from([Buffer.from('stre'), Buffer.from('amed words')])
    t.deepEqual(await ref.read({ book: 'b', body }), { tag: 'kept', words: 2 })

    t.regex(await metrics.exposition(), /svc_actor_answered_total\{actor="words"\} 3\n/)
    t.true(await system.drain(60_000))
    const late = await t.throwsAsync(ref.put({ book: 'a', text: '' }))
    t.is((late as ActorUnavailable).reason, 'stopped')
  })
}

for (const name of ['words', 'words-compute', 'words-thread', 'words-system']) {
  test(`docs/concepts/actor-runtime.md prints ${name}.ts as it is`, (t) => {
    const page = readFileSync(new URL('docs/concepts/actor-runtime.md', root), 'utf8')
    const source = readFileSync(new URL(`test/runtime/kernel/guide/${name}.ts`, root), 'utf8')
    t.true(page.includes(source.replaceAll('../../../../runtime/kernel/', './kernel/')))
  })
}
