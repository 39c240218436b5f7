/** Own service: it ends a thread of the process. */
/** A thread of the proof-of-work pool dies under the whole service. */
import { syncBuiltinESMExports } from 'node:module'
import threads, { type WorkerOptions } from 'node:worker_threads'
import test from 'ava'
import { bootstrap, callerOf, complete, demand, start } from '../../support/agents/journey.js'
import { ownService } from '../../support/service/own-service.js'
import { isReady } from '../../support/service/watch.js'

/** Every thread started from here on whose data names the pool's module. */
const powThreads: threads.Worker[] = []
const { Worker } = threads
threads.Worker = class extends Worker {
  constructor(file: string | URL, options?: WorkerOptions) {
    super(file, options)
    if (JSON.stringify(options?.workerData ?? null).includes('/proof-of-work/'))
      powThreads.push(this)
  }
}
syncBuiltinESMExports()

test('registrations succeed while the threads that verify them keep dying', async (t) => {
  const running = await ownService()
  t.teardown(() => running.end())
  const http = callerOf(running.baseUrl)
  await bootstrap(http)
  t.true(powThreads.length > 0, 'the threads of the pool are known')
  let killed = 0
  for (let round = 0; round < 2; round += 1) {
    const begun = await Promise.all(Array.from({ length: 4 }, () => start(http)))
    const completed = begun.map((each) => complete(http, each))
    for (const thread of powThreads.splice(0)) {
      killed += 1
      await thread.terminate()
    }
    for (const answer of await Promise.all(completed)) demand(answer, 201)
    await bootstrap(http)
  }
  t.true(killed >= 2)
  t.true(await isReady(http))
})
