/** Bounds of what the connections of one address hold. */
import test from 'ava'
import { ADDRESS_BYTES_MAX, ConnectionBounds, Turns } from '../../../gateway/transports/bounds.js'

function connections(bounds: ConnectionBounds, addresses: readonly string[]) {
  const cut: string[] = []
  const opened = addresses.map((address) => new Turns(bounds, address, () => cut.push(address)))
  return { opened, cut }
}

test('the largest connection of an address or of an IPv6 network is closed', (t) => {
  for (const [first, second, other] of [
    ['192.0.2.1', '192.0.2.1', '192.0.2.2'],
    ['2001:db8::1', '2001:db8::2', '2001:db8:0:1::1'],
  ] as const) {
    const bounds = new ConnectionBounds()
    const { opened, cut } = connections(bounds, [first, second, other])
    opened[2]!.hold(ADDRESS_BYTES_MAX)
    opened[1]!.hold(ADDRESS_BYTES_MAX)
    t.deepEqual(cut, [])
    opened[0]!.hold(1)
    t.deepEqual(cut, [second])
    t.deepEqual(bounds.closed, { connection: 0, address: 1, process: 0 })
    t.is(bounds.unsentBytes, ADDRESS_BYTES_MAX + 1)
    for (const connection of opened) connection.end()
    t.is(bounds.unsentBytes, 0)
  }
})

test('addresses that many clients share have no bound', (t) => {
  for (const address of ['127.0.0.1', '::1', '192.0.2.9']) {
    const bounds = new ConnectionBounds((peer) => peer === '192.0.2.9')
    const { opened, cut } = connections(bounds, [address, address])
    for (const connection of opened) connection.hold(ADDRESS_BYTES_MAX)
    t.deepEqual(cut, [])
  }
})
