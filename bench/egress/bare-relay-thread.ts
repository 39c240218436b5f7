/** The thread of the bare relay. */
import { workerData } from 'node:worker_threads'
import { serveThread } from './bare-relay.js'

serveThread(workerData as number)
