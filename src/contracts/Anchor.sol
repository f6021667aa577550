// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Records that a digest existed when a block was made.
/// @notice The event with a digest in block N proves that the digest, and whatever it is a hash of, existed no later than
/// the timestamp of block N. It does not prove who made the digest: `by` is only who sent the call, and anyone may
/// anchor anything. An anchor proves the same through any contract and from any account, because the digest itself is in
/// the block. So this contract has no owner, no storage, no upgrade and no fee, and the loss of the sender's key weakens
/// no anchor.
contract Anchor {
    event Anchored(bytes32 indexed digest, address indexed by);

    /// @notice Emits `Anchored(digest, msg.sender)`. May be called again with the same digest: the earliest event counts.
    /// @param digest SHA-256 of a checkpoint body (C2SP tlog-checkpoint).
    function anchor(bytes32 digest) external {
        emit Anchored(digest, msg.sender);
    }
}
