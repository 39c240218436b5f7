/** A simulated network between service and database, with failures on request. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { preparedNameOf } from '../../../storage/platform/connection.js'
import type { Statement } from '../../../storage/platform/sql.js'

/** A relay in front of the database, with failures on request. */
export async function relayTo(t: { teardown(end: () => void): void }, url: string) {
  const target = new URL(url)
  const host = target.searchParams.get('host') ?? target.hostname
  const port = Number(target.port || 5432)
  const upstreamOf = () =>
    host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host)
  const pairs = new Set<[Socket, Socket]>()
  const held = new Set<Socket>()
  let silent = false
  let full = false
  let losing: string | null = null
  const server = createServer((down) => {
    if (full) {
      held.add(down)
      down.on('error', () => undefined).on('close', () => held.delete(down))
      return
    }
    const up = upstreamOf()
    const pair: [Socket, Socket] = [down, up]
    pairs.add(pair)
    const drop = () => {
      down.destroy()
      up.destroy()
      pairs.delete(pair)
    }
    for (const socket of pair) socket.on('error', drop).on('close', drop)
    let isAnswered = true
    let isLost = false
    down.on('data', (chunk) => {
      if (isAnswered) relay.turns += 1
      isAnswered = false
      if (losing !== null && chunk.includes(losing)) {
        losing = null
        isLost = true
      }
      return silent || up.write(chunk)
    })
    up.on('data', (chunk) => {
      isAnswered = true
      if (isLost) return drop()
      return silent || down.write(chunk)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const relay = {
    url: '',
    /** Number of round trips on all connections. */
    turns: 0,
    reset() {
      for (const [down, up] of pairs) {
        down.resetAndDestroy()
        up.destroy()
      }
    },
    /** Executes that statement once and closes its connection before the response. */
    loseAnswerTo(statement: Statement) {
      losing = preparedNameOf(statement)
    },
    /** Stops relaying in both directions without closing connections. */
    fallSilent() {
      silent = true
    },
    speakAgain() {
      silent = false
    },
    /** Accepts new connections without relaying them. Existing ones continue. */
    openNoMore() {
      full = true
    },
  }
  target.searchParams.delete('host')
  target.hostname = '127.0.0.1'
  target.port = String((server.address() as { port: number }).port)
  relay.url = target.href
  t.teardown(() => {
    for (const [down, up] of pairs) {
      down.destroy()
      up.destroy()
    }
    for (const down of held) down.destroy()
    server.close()
  })
  return relay
}
