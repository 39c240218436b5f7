/** The dependencies of the actors of federated login: rows of `actors.ts`. */
import { browserSessions } from '../../../actors/identity/sign-in/sessions/protocol.js'
import { targetRules } from '../../../actors/platform/outbound-http/outbound.js'
import { createBoundedFetch } from '../../../actors/platform/outbound-http/bounded-fetch.js'
import { identityProvidersActor } from '../../../actors/identity/identity-providers/actor.js'
import { txtLookup } from '../../../actors/identity/identity-providers/txt-records.js'
import { federatedLoginActor } from '../../../actors/identity/sign-in/ways/federated/actor.js'
import {
  UPSTREAM_ANSWER_BYTES_MAX,
  UPSTREAM_CALL_SECS,
  upstreamClient,
} from '../../../actors/identity/sign-in/ways/federated/client.js'
import { fairClient } from '../../../actors/identity/sign-in/ways/federated/fair-client.js'
import { federatedLoginMetrics } from '../../../actors/identity/sign-in/ways/federated/metrics.js'
import {
  callbackOf,
  callbackRelay,
} from '../../../actors/identity/sign-in/ways/federated/callback-relay.js'
import { tenants } from '../../../actors/identity/users/tenants/protocol.js'
import { trustedIssuers } from '../../../actors/oauth/trusted-issuers/protocol.js'
import type { SharedNeeds } from './shared-needs.js'
import { type ActorWiring, wireActor } from '../../kernel/wiring.js'
import { egressSettingsOf } from './egress-settings.js'

export function federatedLoginWirings({ resources, groups }: SharedNeeds): readonly ActorWiring[] {
  const { settings, database, coordination, sealer, clock, random, metrics } = resources
  const { verified_domains: domains } = settings
  const issuer = settings.oidc.issuer_url

  return [
    wireActor(federatedLoginActor, ({ ref, onStop }) => {
      const outside = createBoundedFetch({
        settings: egressSettingsOf(settings),
        answerBytesMax: UPSTREAM_ANSWER_BYTES_MAX,
        timeoutMs: UPSTREAM_CALL_SECS * 1000,
      })
      onStop(() => outside.close())
      return {
        database,
        sealer,
        coordination,
        clock,
        random,
        tenants: ref(tenants),
        trustedIssuers: ref(trustedIssuers),
        browserSessions: ref(browserSessions),
        client: fairClient(upstreamClient(outside.fetch, clock), groups, metrics.shares),
        metrics: federatedLoginMetrics(metrics.registry),
        issuer,
        relay: callbackRelay(settings.oauth_proxy, issuer, clock),
        settings: {
          social: settings.social,
          generic: settings.generic_oauth,
          enterprise: settings.enterprise_sso,
        },
        verifiedDomains: domains.enabled,
        linking: settings.social.account_linking.enabled,
        cookies: settings.session_cookie,
        alwaysTwo: settings.two_factor.enabled,
      }
    }),
    wireActor(identityProvidersActor, () => ({
      database,
      sealer,
      clock,
      random,
      txt: txtLookup(domains.dns_servers),
      groups,
      counts: metrics.shares,
      settings: settings.enterprise_sso,
      domains,
      urlRules: targetRules(settings.vault),
      callbackOf: (provider) => callbackOf(issuer, provider),
    })),
  ]
}
