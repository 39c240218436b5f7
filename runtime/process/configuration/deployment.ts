/** [deployment] and [security]: the kind of this deployment. */
import { z } from 'zod'
import { flag } from '../../kernel/config/kinds.js'
import { section } from '../../kernel/config/section.js'

/** The planes of a process. `all` serves the other three. */
export type Plane = 'all' | 'auth' | 'control' | 'async'

export const deploymentSettings = section(
  'deployment',
  {
    allow_all_in_one_runtime_plane: flag(true).describe(
      'One process may serve all planes; false needs SVC_RUNTIME_PLANE auth, control or async.',
    ),
    background_tasks_enabled: flag(true).describe('Run sweeps, rotation and deliveries.'),
    embedded_chain_monitor: flag(false).describe(
      'A payment counts once the chain shows it, and logs of registries become events; readiness needs the nodes of [[chains]].',
    ),
    thread_start: z
      .enum(['at_start', 'at_first_use'])
      .default('at_first_use')
      .describe(
        'When the threads of egress, webhook deliveries and computations start. at_first_use saves memory: the first call waits up to half a second, and idle compute threads end. at_start: before readiness.',
      ),
    coordination_backend: z
      .enum(['postgres', 'redis', 'memcached'])
      .default('postgres')
      .describe('Where throttles, replay caches and short locks live.'),
    database_topology: z
      .enum(['shared', 'split_by_plane'])
      .default('shared')
      .describe(
        'shared: the planes use database.url, or the URL that is set for them. split_by_plane: each plane has its own URL, and database.url replaces none of them.',
      ),
  },
  { about: 'Topology.' },
)

export const securitySettings = section(
  'security',
  {
    production: flag(false).describe('Required for every deployment that is not local.'),
    webhook_allow_non_standard_ports: flag(false).describe(
      'Webhook receivers on ports other than 443; not in production.',
    ),
  },
  { about: 'Production mode and its one exception.' },
)
