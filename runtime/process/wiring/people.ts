/** Passwords, users, agents, workspaces, browser sessions and federated sign-in. */
import { pooled, processors } from './pools.js'
import { agentsActor } from '../../../actors/agents/agents/actor.js'
import { powMetrics } from '../../../actors/agents/agents/metrics.js'
import { agents } from '../../../actors/agents/agents/protocol.js'
import { browserSessionsActor } from '../../../actors/identity/sign-in/sessions/actor.js'
import {
  checkPasswordEngine,
  type PasswordCompute,
  passwordPlaces,
  passwordPool,
  passwordsHere,
  passwordsActor,
} from '../../../actors/identity/passwords/actor.js'
import { openBreaches } from '../../../actors/identity/passwords/breaches.js'
import { relyingPartyOf } from '../../../actors/identity/sign-in/ways/passkey/settings.js'
import { passwords } from '../../../actors/identity/passwords/protocol.js'
import { pow } from '../../../actors/agents/proof-of-work/protocol.js'
import { tenants } from '../../../actors/identity/users/tenants/protocol.js'
import { tokens } from '../../../actors/oauth/tokens/protocol.js'
import { usersActor } from '../../../actors/identity/users/actor.js'
import { users } from '../../../actors/identity/users/protocol.js'
import { workspacesActor } from '../../../actors/agents/workspaces/actor.js'
import { type ActorWiring, wireActor } from '../../kernel/wiring.js'
import { registriesIn } from '../configuration/registries.js'
import { openRegistries } from './chain-nodes.js'
import { federatedLoginWirings } from './federated-login.js'
import { egressSettingsOf } from './egress-settings.js'
import type { SharedNeeds } from './shared-needs.js'

/** The actors of this file, with their dependencies. */
export function peopleWirings(shared: SharedNeeds): readonly ActorWiring[] {
  const {
    resources,
    settings,
    database,
    clock,
    random,
    metrics,
    auth,
    challenge,
    issuer,
    alwaysTwo,
    registry,
    mailQueue,
    groups,
    documents,
    common,
  } = shared
  return [
    wireActor(passwordsActor, async (context) => {
      const pool = passwordPool(auth, processors(context))
      const compute: PasswordCompute = pooled(context, resources, pool)
      const { thread_start: starts } = settings.deployment
      await checkPasswordEngine(starts === 'at_start' ? compute : await passwordsHere())
      const breaches = challenge.hibp_enabled
        ? openBreaches({ url: challenge.hibp_url, settings: egressSettingsOf(settings) })
        : null
      context.onStop(async () => breaches?.close())
      const places = passwordPlaces(pool)
      const { shares: counts } = metrics
      return { settings: auth, compute, random, breaches, places, groups, counts }
    }),
    wireActor(usersActor, ({ ref }) => ({
      ...common,
      passwords: ref(passwords),
      tokens: ref(tokens),
      mail: mailQueue,
      invitations: settings.invitations,
      resetTtlSecs: settings.user_self_service.reset_ttl_secs,
      issuer,
    })),
    wireActor(agentsActor, ({ ref, onStop }) => {
      const registries = openRegistries(settings)
      onStop(() => registries.close())
      return {
        ...common,
        tenants: ref(tenants),
        pow: ref(pow),
        tokens: ref(tokens),
        outcomes: powMetrics(registry),
        documents,
        registries: registries.value,
        groups,
        counts: metrics.shares,
        issuer,
        settings: challenge,
      }
    }),
    wireActor(workspacesActor, ({ ref }) => ({
      database,
      clock,
      random,
      agents: ref(agents),
      tenants: ref(tenants),
      tokens: ref(tokens),
      users: ref(users),
      issuer,
      egressUrl: settings.server.egress_url,
      anchorTypes: [
        'did_key' as const,
        'did_web' as const,
        ...(registriesIn(settings.chains).length > 0 ? ['erc8004' as const] : []),
      ],
    })),
    wireActor(browserSessionsActor, () => ({
      database,
      clock,
      random,
      alwaysTwo,
      registry,
      relyingParty: relyingPartyOf(settings.passkey, issuer),
    })),
    ...federatedLoginWirings(shared),
  ]
}
