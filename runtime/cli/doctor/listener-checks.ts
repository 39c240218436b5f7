/** Which transport and parser serve each listener, and how long they keep idle connections. */
import { egressListener } from '../../../gateway/settings.js'
import { type NativeVerdict, verifyNative } from '../../../gateway/transports/native.js'
import { NATIVE_KEEP_ALIVE_SECS } from '../../../gateway/transports/open.js'
import { isLoopback, wantedParser } from '../../../gateway/transports/parser.js'
import { egressPortOf } from '../../process/egress-address.js'
import { type Check, ok, type Patient, warn } from './checks.js'

const KEEP_ALIVE_DEFAULT_SECS = 75

/** The listeners of the settings, as a process on this machine opens them. */
export function listenerChecks(
  { settings, plane }: Pick<Patient, 'settings' | 'plane'>,
  native: NativeVerdict = verifyNative(),
): readonly Check[] {
  const { server } = settings
  const port = egressPortOf({ settings, plane })
  return [
    ...listenerCheck('listener', server, native),
    ...(port === undefined
      ? [ok('egress_listener', 'not configured: the main listener serves the egress proxy')]
      : listenerCheck('egress_listener', egressListener(server, port), native)),
  ]
}

function listenerCheck(
  name: string,
  server: Patient['settings']['server'],
  native: NativeVerdict,
): readonly Check[] {
  const { host, port, transport, keep_alive_secs: keepAlive } = server
  const wanted = wantedParser(server) ?? 'node'
  const isNative = wanted === 'uwebsockets' && native.tag === 'verified'
  const secs = isNative ? NATIVE_KEEP_ALIVE_SECS : keepAlive
  const parser = isNative ? 'uwebsockets' : 'node'
  const checks = [
    ok(
      name,
      `${host} port ${port}: ${transport}, parser ${parser}, idle connections are closed after ${secs} s`,
    ),
  ]
  if (wanted === 'uwebsockets' && native.tag === 'refused') {
    checks.push(
      warn(
        name,
        `uWebSockets is not available (${native.reason}): node serves, which is slower`,
        'install the packages of the lock file, or set server.http1_parser to "node"',
      ),
    )
  }
  if (isNative && transport === 'plain_http' && !isLoopback(host)) {
    checks.push(
      warn(
        name,
        'uWebSockets answers 505 to a request line that the network cuts in two',
        'set server.http1_parser to "auto" or "node"',
      ),
    )
  }
  if (isNative && keepAlive !== KEEP_ALIVE_DEFAULT_SECS) {
    checks.push(
      warn(
        name,
        `server.keep_alive_secs has no effect: uWebSockets closes idle connections after ${secs} s`,
        'remove server.keep_alive_secs, and let the proxy keep idle connections for 5 s',
      ),
    )
  }
  return checks
}
