/** Problem types in French. */
import type { ProblemTexts } from '../problem-advice.js'

export const fr: ProblemTexts = {
  words: {
    status: 'Statut {status}, code d’erreur',
    cause: 'Cause',
    remedy: 'Que faire',
    retry: 'Nouvel essai',
    all: 'Tous les types d’erreur',
    intro:
      'Les erreurs de ce service sont des documents de problème (RFC 9457). Le membre `type` est l’adresse de l’une de ces pages.',
  },
  retry: {
    changed: 'Ne répétez pas la même requête : elle échouera encore. Envoyez une requête corrigée.',
    token: 'Répétez la requête une fois avec un autre jeton.',
    never: 'Ne répétez pas la requête.',
    same: 'Répétez la même requête. Ne répétez une écriture qu’avec son `idempotency-key`.',
    wait: 'Attendez le nombre de secondes indiqué par `Retry-After`, puis répétez la même requête.',
    backoff:
      'Attendez `Retry-After` s’il est présent, sinon une seconde, doublée à chaque essai. Ne répétez une écriture qu’avec son `idempotency-key`.',
  },
  types: {
    'bad-request': [
      'Requête incorrecte',
      'La requête est mal formée, il manque un membre obligatoire ou une valeur n’est pas valide. Le membre `errors` situe chaque faute par un pointeur JSON, si le serveur la connaît.',
      'Lisez `errors` et `detail`, et comparez la requête à son opération dans `/openapi.json`.',
    ],
    unauthorized: [
      'Non authentifié',
      'Les identifiants manquent ou ne sont pas valides. `WWW-Authenticate` indique le schéma et les métadonnées du serveur d’autorisation.',
      'Envoyez un jeton d’accès de ce service dans l’en-tête `Authorization`. `/auth.md` explique comment en obtenir un.',
    ],
    'token-expired': [
      'Jeton expiré',
      'Le jeton d’accès a expiré.',
      'Utilisez le jeton d’actualisation ou reconnectez-vous.',
    ],
    'token-revoked': [
      'Jeton révoqué',
      'Le jeton d’accès a été révoqué avant son expiration.',
      'Reconnectez-vous ou demandez une nouvelle délégation à l’utilisateur. Abandonnez l’ancien jeton.',
    ],
    'delegation-expired': [
      'Délégation expirée',
      'La délégation de l’utilisateur à l’agent a expiré. Une actualisation ne renvoie pas de nouveau jeton.',
      'Commencez une nouvelle délégation et demandez à l’utilisateur.',
    ],
    'payment-required': [
      'Paiement requis',
      'La ressource est payante. La réponse contient le prix et les moyens de paiement.',
      'Payez par l’un des moyens de la réponse, puis répétez la requête avec la preuve de paiement.',
    ],
    forbidden: [
      'Interdit',
      'L’appelant est authentifié mais n’est pas autorisé : le locataire, le rôle ou le type de jeton ne le permettent pas.',
      'Utilisez un jeton du bon locataire ou demandez le rôle à un administrateur. `detail` donne la raison.',
    ],
    'insufficient-scope': [
      'Portée insuffisante',
      'Il manque au jeton une portée de cette opération. `WWW-Authenticate` la nomme.',
      'Obtenez un jeton avec la portée que nomme `WWW-Authenticate`.',
    ],
    'policy-denied': [
      'Refusé par une politique',
      'Une politique du locataire ou de l’organisation interdit l’opération.',
      'Demandez à un administrateur du locataire de modifier la politique.',
    ],
    'not-found': [
      'Introuvable',
      'La ressource n’existe pas ou appartient à un locataire que l’appelant ne voit pas.',
      'Vérifiez le chemin et l’identifiant, et que le jeton appartient au locataire de l’objet.',
    ],
    'method-not-allowed': [
      'Méthode non autorisée',
      'La ressource existe mais n’accepte pas cette méthode. L’en-tête `Allow` liste ses méthodes.',
      'Utilisez l’une des méthodes de l’en-tête `Allow`.',
    ],
    'not-acceptable': [
      'Format non acceptable',
      'L’en-tête `Accept` exclut tous les types de média de cette opération.',
      'Envoyez `Accept: application/json`, ou aucun en-tête `Accept`.',
    ],
    'request-timeout': [
      'Délai de la requête dépassé',
      'La requête n’est pas arrivée en entier à temps.',
      'Vérifiez la connexion et envoyez le corps sans pause.',
    ],
    conflict: [
      'Conflit',
      'La requête contredit l’état actuel, par exemple une clé déjà enregistrée, ou un `idempotency-key` dont la première requête est encore en cours.',
      'Relisez l’objet et décidez selon son état actuel. `detail` nomme le conflit.',
    ],
    gone: [
      'Plus disponible',
      'La ressource a existé et n’est plus disponible.',
      'Recommencez : demandez un nouveau lien, un nouveau code ou un nouvel objet.',
    ],
    'payload-too-large': [
      'Requête trop volumineuse',
      'Le corps de la requête dépasse la limite de cette opération.',
      'Envoyez un corps plus petit. `/openapi.json` donne les limites de l’opération.',
    ],
    'uri-too-long': [
      'Adresse trop longue',
      'La cible de la requête dépasse 16 Kio.',
      'Envoyez les longues valeurs dans le corps plutôt que dans l’adresse.',
    ],
    'unsupported-media-type': [
      'Type de média non pris en charge',
      'Cette opération n’accepte pas ce `Content-Type` ou ce `Content-Encoding`.',
      'Envoyez le `Content-Type` que l’opération nomme dans `/openapi.json`, sans `Content-Encoding`.',
    ],
    'misdirected-request': [
      'Mauvais hôte',
      'Ce service ne répond pas pour l’hôte de la requête.',
      'Utilisez l’hôte de l’émetteur ou d’un locataire. Opérateurs : ajoutez l’hôte à `server.allowed_hosts`.',
    ],
    'unprocessable-content': [
      'Contenu non traitable',
      'La requête est bien formée mais ne peut pas être traitée, par exemple un `idempotency-key` déjà utilisé avec un autre corps.',
      'Utilisez un nouvel `idempotency-key` pour une nouvelle requête, ou corrigez ce que nomme `detail`.',
    ],
    'too-early': [
      'Trop tôt',
      'Une preuve valide est arrivée avant sa durée minimale.',
      'Gardez la preuve et envoyez-la après la durée minimale.',
    ],
    'rate-limited': [
      'Trop de requêtes',
      'Une limite est dépassée. `Retry-After` et `RateLimit` donnent le temps d’attente, `violated-policies` les noms des limites.',
      'Envoyez moins de requêtes. L’en-tête `RateLimit` indique combien il en reste.',
    ],
    'headers-too-large': [
      'En-têtes trop volumineux',
      'Les en-têtes dépassent la limite de 64 champs ou de 16 Kio.',
      'Envoyez moins d’en-têtes, ou de plus courts.',
    ],
    'server-error': [
      'Erreur du serveur',
      'Une erreur interne s’est produite.',
      'Signalez l’identifiant de la requête (`x-request-id`) à l’opérateur de ce service.',
    ],
    'not-implemented': [
      'Non disponible',
      'Ce déploiement n’a pas configuré la fonction nécessaire.',
      'Demandez à l’opérateur de la configurer. `/api/v1/capabilities` liste ce qui est disponible.',
    ],
    'bad-gateway': [
      'Mauvaise réponse d’un autre serveur',
      'Un serveur en amont a donné une réponse non valide.',
      'Vérifiez ce serveur ou réessayez plus tard.',
    ],
    'service-unavailable': [
      'Service indisponible',
      'Le service démarre, est surchargé, ou une dépendance est indisponible.',
      'Attendez. `/health/ready` indique quand le service est prêt.',
    ],
    'gateway-timeout': [
      'Délai dépassé',
      'La requête n’a pas abouti dans le temps imparti et a été annulée.',
      'Réessayez. Si cela se reproduit, demandez moins à la fois.',
    ],
    'version-not-supported': [
      'Version de HTTP non prise en charge',
      'La ligne de requête n’indique aucune version de HTTP prise en charge par cette connexion.',
      'Envoyez HTTP/1.1, ou convenez de HTTP/2 à l’ouverture de la connexion TLS (ALPN).',
    ],
  },
}
