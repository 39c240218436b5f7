/**
 * One mail server for all services that test files share. The runner starts it, and a file reads what came to its addresses
 * (`sharedMail()`). A thread, so that it takes messages while the runner reads results.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import type { MailPlaces } from '../operations/letters.js'
import { openMailServer } from '../operations/mail.js'

export interface PostOffice {
  readonly places: MailPlaces
  end(): Promise<void>
}

export async function openPostOffice(): Promise<PostOffice> {
  const thread = new Worker(new URL(import.meta.url))
  const ended = once(thread, 'exit')
  const [places] = (await once(thread, 'message')) as [MailPlaces]
  return {
    places,
    async end() {
      thread.postMessage('end')
      await ended
    },
  }
}

async function serve(): Promise<void> {
  const mail = await openMailServer()
  const desk = createServer((request, response) => {
    const { searchParams: asked } = new URL(request.url!, 'http://office')
    void mail.more(asked.get('to')!, Number(asked.get('seen'))).then((letters) => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(letters))
    })
  })
  desk.listen(0, '127.0.0.1')
  await once(desk, 'listening')
  const { port } = desk.address() as AddressInfo
  parentPort!.once('message', () => {
    desk.closeAllConnections()
    desk.close()
    void mail.close()
  })
  const places: MailPlaces = { port: mail.port, desk: `http://127.0.0.1:${port}` }
  parentPort!.postMessage(places)
}

if (!isMainThread) await serve()
