/** A second thread of the bare uWebSockets server, on the port of the first. */
import { parentPort, workerData } from 'node:worker_threads'
import { loadNative } from '../../gateway/transports/native.js'

const native = loadNative()
if (native.tag === 'refused') throw new Error(native.reason)
const app = native.uws.App().get('/*', (res) => {
  res.end('{"status":"ok"}')
})
app.listen('127.0.0.1', workerData as number, () => parentPort!.postMessage('listening'))
