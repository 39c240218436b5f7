/**
 * Begins TLS connections one per turn of the event loop, in turn between tenants. The beginning of a handshake is a
 * millisecond of work that cannot be divided: with a thousand in one turn nothing else of the thread runs for a second,
 * and a tenant that opens one waits for all of them.
 */
import { FairQueue, QueueItem } from '../../../runtime/kernel/fairness/fair-queue.js'

class Beginning extends QueueItem {
  readonly run: () => void

  constructor(tenantId: string, run: () => void) {
    super()
    this.share = tenantId
    this.run = run
  }
}

export class ConnectTurns {
  /** Bounded by the calls that wait for a connection. */
  readonly #waiting = new FairQueue<Beginning>({ capacity: Number.POSITIVE_INFINITY })

  /** @param run begins the connection. It must not throw. */
  begin(tenantId: string, run: () => void): void {
    const isFirst = this.#waiting.size === 0
    this.#waiting.push(new Beginning(tenantId, run))
    if (isFirst) setImmediate(this.#next)
  }

  readonly #next = (): void => {
    const beginning = this.#waiting.shift()
    if (this.#waiting.size > 0) setImmediate(this.#next)
    beginning?.run()
  }
}
