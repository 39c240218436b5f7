/** The transports of test services. */
import { IS_LONG } from '../runs.js'
import { THROUGH_TRANSPORT } from './through.js'
import type { Transport } from '../service/settings.js'

/**
 * Those that flows are repeated over. `tls` and `tls_http1` have tests in test/gateway. Through a proxy there is
 * one, whatever its name: the proxy decides.
 */
export const TRANSPORTS: readonly Transport[] =
  THROUGH_TRANSPORT === undefined ? ['plain_http', 'tls_h2_only'] : ['plain_http']

/** Transports of flows whose repetition over HTTP/2 is in the long form. */
export const REPEATED_OVER: readonly Transport[] = IS_LONG ? TRANSPORTS : ['plain_http']

/** The runner repeats the flows with TEST_TRANSPORT=tls_h2_only. */
export const DEFAULT_TRANSPORT: Transport =
  THROUGH_TRANSPORT ??
  (['tls_http1', 'tls', 'tls_h2_only'] as const).find(
    (name) => name === process.env['TEST_TRANSPORT'],
  ) ??
  'plain_http'

/**
 * TEST_GATEWAY_THREADS=2 runs flows with two gateway threads, which on Node.js 20 only the native parser and
 * plain_http allow.
 */
export const THREADS = process.env['TEST_GATEWAY_THREADS']
