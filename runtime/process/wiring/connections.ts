/** Connected accounts, the providers at which people connect them, and MCP servers. */
import { browserSessions } from '../../../actors/identity/sign-in/sessions/protocol.js'
import { createBoundedFetch } from '../../../actors/platform/outbound-http/bounded-fetch.js'
import { targetRules } from '../../../actors/platform/outbound-http/outbound.js'
import { faultsUnder } from '../../../actors/platform/outbound-http/targets.js'
import { FRESH_FACTORS_SECS } from '../../../actors/domain/assurance.js'
import { connectCalls, type EndNeeds } from '../../../actors/vault/vault/connections/needs.js'
import { connectionsActor } from '../../../actors/vault/vault/connections/actor.js'
import { connectorsActor } from '../../../actors/vault/vault/connections/connectors.js'
import { mcpServersActor } from '../../../actors/vault/vault/mcp-servers/actor.js'
import { type ActorContext, type ActorWiring, wireActor } from '../../kernel/wiring.js'
import { egressSettingsOf } from './egress-settings.js'
import type { SharedNeeds } from './shared-needs.js'
import { egressForgets } from './vault.js'

const ANSWER_BYTES_MAX = 64 * 1024
const TIMEOUT_MS = 30_000

/** What ends connections, for each actor that does. They share the places for calls to providers. */
export function connectionEnding(shared: SharedNeeds): (context: ActorContext) => EndNeeds {
  const { resources, settings, database, clock, random, sealer, groups } = shared
  const calls = connectCalls(shared.metrics.shares)
  return (context) => {
    const { fetch, close } = createBoundedFetch({
      settings: egressSettingsOf(settings),
      answerBytesMax: ANSWER_BYTES_MAX,
      timeoutMs: TIMEOUT_MS,
    })
    context.onStop(close)
    const changed = egressForgets(context, resources)
    return { database, clock, random, sealer, fetch, calls, groups, changed }
  }
}

export function connectionWirings(
  shared: SharedNeeds,
  ending: ReturnType<typeof connectionEnding>,
): readonly ActorWiring[] {
  const { resources, settings, database, clock, random, issuer, documents } = shared
  const urlFaultOf = faultsUnder(targetRules(settings.vault))
  return [
    wireActor(connectorsActor, (context) => ({ ...ending(context), issuer, urlFaultOf })),
    wireActor(mcpServersActor, (context) => ({
      database,
      clock,
      random,
      urlFaultOf,
      changed: egressForgets(context, resources),
    })),
    wireActor(connectionsActor, (context) => ({
      ...ending(context),
      issuer,
      browserSessions: context.ref(browserSessions),
      documents,
      settings: settings.vault,
      maxAuthAgeSecs: Math.min(
        FRESH_FACTORS_SECS,
        settings.device_authorization.approval_max_auth_age_secs,
      ),
    })),
  ]
}
