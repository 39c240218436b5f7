// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// The part of the Identity Registry of ERC-8004 that causes events.
contract IdentityRegistry {
    uint256 private last;
    mapping(uint256 => address) private owners;

    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);
    event URIUpdated(uint256 indexed agentId, string newURI, address indexed updatedBy);
    event MetadataSet(uint256 indexed agentId, string indexed indexedMetadataKey, string metadataKey, bytes metadataValue);

    function ownerOf(uint256 agentId) external view returns (address) {
        require(owners[agentId] != address(0), "no such agent");
        return owners[agentId];
    }

    function register(uint256 agentId, address owner) external {
        owners[agentId] = owner;
        emit Transfer(address(0), owner, agentId);
    }

    function transferFrom(address from, address to, uint256 agentId) external {
        owners[agentId] = to;
        emit Transfer(from, to, agentId);
    }

    function setAgentURI(uint256 agentId, string calldata newURI) external {
        emit URIUpdated(agentId, newURI, msg.sender);
    }

    function setMetadata(uint256 agentId, string calldata key, bytes calldata value) external {
        emit MetadataSet(agentId, key, key, value);
    }

    /// Equal logs in one transaction.
    function setAgentURITwice(uint256 agentId, string calldata newURI) external {
        emit URIUpdated(agentId, newURI, msg.sender);
        emit URIUpdated(agentId, newURI, msg.sender);
    }
}

/// The part of the Reputation Registry of ERC-8004 that causes events.
contract ReputationRegistry {
    event NewFeedback(
        uint256 indexed agentId, address indexed clientAddress, uint64 feedbackIndex, int128 value, uint8 valueDecimals,
        string indexed indexedTag1, string tag1, string tag2, string endpoint, string feedbackURI, bytes32 feedbackHash
    );
    event FeedbackRevoked(uint256 indexed agentId, address indexed clientAddress, uint64 indexed feedbackIndex);

    function giveFeedback(
        uint256 agentId, int128 value, uint8 valueDecimals, string calldata tag1, string calldata tag2,
        string calldata endpoint, string calldata feedbackURI, bytes32 feedbackHash
    ) external {
        emit NewFeedback(
            agentId, msg.sender, 1, value, valueDecimals, tag1, tag1, tag2, endpoint, feedbackURI, feedbackHash
        );
    }

    function revokeFeedback(uint256 agentId, uint64 feedbackIndex) external {
        emit FeedbackRevoked(agentId, msg.sender, feedbackIndex);
    }
}

/// An account that is a contract (EIP-1271) with one key.
contract ContractAccount {
    address private immutable key;

    constructor(address key_) {
        key = key_;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        return ecrecover(hash, uint8(signature[64]), r, s) == key ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}
