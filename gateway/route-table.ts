/** All routes of the build. A plane serves those whose actors sit in it. */
import { agentRoutes } from './routes/agents.js'
import { applicationRoutes } from './routes/applications.js'
import { discoveryRoutes } from './routes/discovery.js'
import { healthRoutes } from './routes/health.js'
import { oauthRoutes } from './routes/oauth.js'
import type { Route } from './route.js'
import { workspaceRoutes } from './routes/workspaces.js'

export const ROUTES: readonly Route[] = [
  ...healthRoutes,
  ...discoveryRoutes,
  ...oauthRoutes,
  ...agentRoutes,
  ...workspaceRoutes,
  ...applicationRoutes,
]
