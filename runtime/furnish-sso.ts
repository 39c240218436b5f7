/** What the actors of other providers' sign-ins are given: rows of `furnish.ts`. */
import { browserSessions } from '../actors/browser-sessions/protocol.js'
import { createBoundedFetch } from '../actors/egress/bounded-fetch.js'
import { federationActor } from '../actors/federation/actor.js'
import { txtLookup } from '../actors/federation/txt-records.js'
import { ssoActor } from '../actors/sso/actor.js'
import {
  UPSTREAM_ANSWER_BYTES_MAX,
  UPSTREAM_CALL_SECS,
  upstreamClient,
} from '../actors/sso/client.js'
import { ssoMetrics } from '../actors/sso/metrics.js'
import { callbackOf } from '../actors/sso/sign-in.js'
import { tenants } from '../actors/tenants/protocol.js'
import type { House } from './house.js'
import { type Furnishing, furnish } from './kernel/furnishing.js'
import { egressSettingsOf } from './outward.js'

export function ssoFurnishings(house: House): readonly Furnishing[] {
  const { settings, database, sealer, clock, random, metrics } = house
  const { vault, verified_domains: domains } = settings
  const issuer = settings.oidc.issuer_url

  return [
    furnish(ssoActor, ({ ref, onStop }) => {
      const outside = createBoundedFetch({
        settings: egressSettingsOf(settings),
        answerBytesMax: UPSTREAM_ANSWER_BYTES_MAX,
        timeoutMs: UPSTREAM_CALL_SECS * 1000,
      })
      onStop(() => outside.close())
      return {
        database,
        sealer,
        clock,
        random,
        tenants: ref(tenants),
        browserSessions: ref(browserSessions),
        client: upstreamClient(outside.fetch, clock),
        metrics: ssoMetrics(metrics.registry),
        issuer,
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
    furnish(federationActor, () => ({
      database,
      sealer,
      clock,
      random,
      txt: txtLookup(domains.dns_servers),
      settings: settings.enterprise_sso,
      domains,
      urlRules: {
        nonStandardPorts: vault.egress_allow_non_standard_ports,
        privateNetworks: vault.egress_allow_private_networks,
      },
      callbackOf: (provider) => callbackOf(issuer, provider),
    })),
  ]
}
