/** The same work behind a bare port, Comlink and Piscina: the peers of the bench. */
import { parentPort } from 'node:worker_threads'
import { expose } from 'comlink'
import { endpointOf } from '../../runtime/kernel/threads/thread-control.js'
import { type Claim, verify } from './verifier.js'

/** The function that Piscina calls. */
export function verifyOnce(message: Claim) {
  return verify(message)
}

parentPort?.on('message', (batch: unknown) => {
  if (!Array.isArray(batch)) return
  const replies = (batch as [number, Claim][]).map(([id, message]) => [id, verify(message)])
  parentPort!.postMessage(replies)
})

parentPort?.once('message', (message: unknown) => {
  const { comlink } = message as { comlink?: Parameters<typeof endpointOf>[0] }
  if (comlink !== undefined) expose({ verify }, endpointOf(comlink))
})
