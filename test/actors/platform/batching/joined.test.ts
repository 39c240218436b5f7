import test from 'ava'
import { joined } from '../../../../actors/platform/batching/joined.js'

type Read = { readonly end: (value: number) => void; readonly fail: (error: Error) => void }

test('callers that come while a read runs share the next one', async (t) => {
  const reads: Read[] = []
  const read = () =>
    new Promise<number>((end, fail) => {
      reads.push({ end, fail })
    })
  const shared = joined<number>()
  const first = shared('a', read)
  const late = [shared('a', read), shared('a', read)]
  const other = shared('b', read)
  t.is(reads.length, 2)
  reads[0]!.end(1)
  reads[1]!.end(9)
  t.deepEqual([await first, await other], [1, 9])
  t.is(reads.length, 3)
  const later = shared('a', read)
  reads[2]!.fail(new Error('away'))
  for (const one of late) await t.throwsAsync(one, { message: 'away' })
  t.is(reads.length, 4)
  reads[3]!.end(4)
  t.is(await later, 4)
  void shared('a', read)
  t.is(reads.length, 5)
})
