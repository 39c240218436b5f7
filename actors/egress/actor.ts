/** The relay on its own thread: secrets that are injected are seen by no other. */
import { readFileSync } from 'node:fs'
import { defineActor } from '../../runtime/kernel/actor.js'
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Random } from '../../runtime/kernel/random.js'
import type { VaultSettings } from '../vault/settings.js'
import { createDialer } from './dialer.js'
import { requestHeaders } from './headers.js'
import { egress, type EgressProtocol, type RelayReport } from './protocol.js'
import { type Relay, relay } from './relay.js'
import { judgeTarget } from './targets.js'
import { createUpstreams } from './upstreams.js'

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
/** Reports of ended relays that nobody has asked for yet; the oldest is forgotten beyond it. */
const REPORTS_KEPT_MAX = 4096

export type EgressSettings = Pick<
  VaultSettings,
  | 'egress_allow_private_networks'
  | 'egress_allow_non_standard_ports'
  | 'egress_ca_pem_path'
  | 'egress_dns_overrides'
>
export type EgressNeeds = {
  readonly settings: EgressSettings
  readonly clock: Clock
  readonly random: Random
}

export const egressActor = defineActor<EgressProtocol, EgressNeeds>({
  address: egress,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 1024 },
  lane: { relay: () => undefined, ended: () => undefined },
  create: ({ settings, clock, random }, life) => {
    const caPath = settings.egress_ca_pem_path
    const upstreams = createUpstreams(
      createDialer({
        privateNetworks: settings.egress_allow_private_networks,
        dnsOverrides: settings.egress_dns_overrides,
        ca: caPath === undefined ? undefined : readFileSync(caPath, 'utf8'),
      }),
    )
    const rules = {
      nonStandardPorts: settings.egress_allow_non_standard_ports,
      privateNetworks: settings.egress_allow_private_networks,
    }
    const reports = new Map<string, Promise<RelayReport>>()
    life.signal.addEventListener('abort', () => void upstreams.destroy(), { once: true })

    function remember({ ended }: Relay): string {
      const relayId = random.uuid()
      reports.set(relayId, ended)
      if (reports.size > REPORTS_KEPT_MAX) reports.delete(reports.keys().next().value!)
      return relayId
    }

    return {
      async relay({ target, limits, body, bodyBytes }, turn) {
        const refuse = (fault: Parameters<typeof refused>[0]) => {
          body?.cancel('refused')
          return refused(fault)
        }
        if (!METHODS.has(target.method)) return refuse('method')
        const judged = judgeTarget(target.url, rules)
        if (judged.tag === 'refused') return refuse(judged.fault)
        const sanitized = requestHeaders(target.headers, target.injected)
        if (sanitized.tag === 'refused') return refuse(sanitized.fault)

        const { url } = judged
        const running = relay(
          upstreams.of(url.origin),
          {
            method: target.method,
            path: url.pathname + url.search,
            headers: sanitized.headers,
            body,
            bodyBytes,
            limits,
            signal: turn.signal,
          },
          clock,
        )
        const start = await running.started
        return start.tag === 'failed' ? start : { ...start, relayId: remember(running) }
      },

      async ended({ relayId }) {
        const report = reports.get(relayId)
        if (report === undefined) return { tag: 'unknown' }
        try {
          return { tag: 'ended', report: await report }
        } finally {
          reports.delete(relayId)
        }
      },
    }
  },
})

type Refused = Extract<EgressProtocol['relay']['reply'], { tag: 'refused' }>

function refused(fault: Refused['fault']): Refused {
  return { tag: 'refused', fault }
}
