/** The dependencies of each actor and worker. Rows in the order of `planes.ts`. */
import type { ActorWiring } from '../../kernel/wiring.js'
import type { ProcessResources } from '../process-resources.js'
import { issuingWirings } from './issuing.js'
import { peopleWirings } from './people.js'
import { signInWirings } from './sign-in.js'
import { connectionEnding, connectionWirings } from './connections.js'
import { clientWirings } from './clients.js'
import { directoryWirings } from './directory.js'
import { workerWirings } from './workers.js'
import { sharedNeeds } from './shared-needs.js'

/** All actors and workers with their dependencies. */
export function actorWirings(resources: ProcessResources): readonly ActorWiring[] {
  const shared = sharedNeeds(resources)
  const ending = connectionEnding(shared)
  return [
    ...issuingWirings(shared),
    ...peopleWirings(shared),
    ...signInWirings(shared),
    ...clientWirings(shared),
    ...directoryWirings(shared),
    ...workerWirings(shared, ending),
    ...connectionWirings(shared, ending),
  ]
}
