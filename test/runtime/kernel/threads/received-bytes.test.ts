/** The memory of bytes from another thread is free as soon as they have been used. */
import test from 'ava'
import {
  receivedBytes,
  releaseReceived,
} from '../../../../runtime/kernel/threads/received-bytes.js'

const MIB = 1024 * 1024

test('bytes that were received are empty after their release, which can be repeated', (t) => {
  const bytes = receivedBytes(new Uint8Array([1, 2, 3]).buffer)
  t.deepEqual([...bytes], [1, 2, 3])
  releaseReceived(bytes)
  t.is(bytes.byteLength, 0)
  t.notThrows(() => releaseReceived(bytes))
})

test('bytes of another origin stay as they are', (t) => {
  const bytes = new Uint8Array([1, 2, 3])
  releaseReceived(bytes)
  t.deepEqual([...bytes], [1, 2, 3])
})

test.serial('a release frees the memory without a garbage collection', (t) => {
  const all = Array.from({ length: 64 }, () => receivedBytes(new ArrayBuffer(MIB)))
  const filled = process.memoryUsage().arrayBuffers
  for (const bytes of all) releaseReceived(bytes)
  t.true(filled - process.memoryUsage().arrayBuffers > 60 * MIB)
})
